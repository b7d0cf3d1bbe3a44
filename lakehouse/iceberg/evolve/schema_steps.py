"""Steps and denied changes of an evolution.

Automatic steps run before a write. Others wait for `lakehouse apply`; those that block writes
stop them until then, since DataFrames in the declared schema would not fit the table.
"""

from dataclasses import dataclass
from enum import IntEnum, auto

from lakehouse.iceberg.catalog.catalog import Catalog

Path = tuple[str, ...]
"""A column, or the path to a nested field: `("lines", "element", "price")`."""


class Order(IntEnum):
    """The order of steps: a name must exist before others refer to it."""

    CREATE = auto()
    RENAME = auto()
    WIDEN = auto()
    ALLOW_NULL = auto()
    ADD = auto()
    COMMENT = auto()
    PARTITIONING = auto()
    SORT_ORDER = auto()
    DROP = auto()
    LOCATION = auto()
    FORMAT = auto()
    PROPERTIES = auto()
    COMMIT = auto()


@dataclass(frozen=True)
class Step:
    """One change of a table: its description and SQL."""

    order: Order
    description: str
    clauses: tuple[str, ...] = ()
    """SQL of each statement after the table name; none for a creation or an empty commit."""
    prefix: str = "ALTER TABLE"
    """SQL of each statement before the table name."""
    automatic: bool = True
    blocks_writes: bool = False

    def statements(self, catalog: Catalog, table: str) -> list[str]:
        return [f"{self.prefix} {catalog.sql_name(table)} {clause}" for clause in self.clauses]


@dataclass(frozen=True)
class DeniedChange:
    """A declared change that would lose data or break readers.

    `current` and `declared` complete "… is `current` in the table and `declared` in the
    declaration".
    """

    table: str
    subject: str
    """The subject of the change, such as `column price`."""
    current: str
    declared: str
    why: str
    next_step: str

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.subject} is {self.current} in the table and {self.declared}"
            f" in the declaration; {self.why} {self.next_step}"
        )


Change = Step | DeniedChange


def dotted(path: Path) -> str:
    return ".".join(path)
