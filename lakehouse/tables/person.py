"""One person as the tables know them; a value without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Person:
    """The values that stand for a person, as text: as Spark casts them to a string, whatever a
    column's type.
    """

    subject: str
    """The column that stands for the person, such as `customer_id`."""
    ids: frozenset[str]
    """Its values; bronze may have one as it was delivered (` 007 `) beside the typed one."""
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What identifies the person directly, by column."""
