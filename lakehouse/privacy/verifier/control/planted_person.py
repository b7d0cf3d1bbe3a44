"""A made-up person, whom nobody can be: random values."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakehouse.privacy.verifier.held_columns import HeldColumns
from lakehouse.tables.person import Person

SUBJECT = "customer_id"
PERSONAL = "customer_email"
TABLE = "control"
_FOLDERS = (
    "warehouse/control",
    "inbox/control",
    "archive/control",
    "rejected/control",
    "staging/control",
)


@dataclass(frozen=True)
class PlantedPerson:
    """The values that are planted."""

    small_id: int
    """One that bytes cannot tell from others, which columns have to tell."""
    long_id: int
    email: str

    @classmethod
    def new(cls) -> "PlantedPerson":
        """Return somebody new."""
        name = secrets.token_hex(12)
        return cls(
            1_000_000 + secrets.randbelow(8_000_000),
            10**11 + secrets.randbelow(10**11),
            f"é{name}@control.invalid",
        )

    @property
    def born(self) -> datetime:
        """Return a day that no one else has."""
        return datetime(1001, 1, 1, tzinfo=UTC) + timedelta(days=self.small_id % 300_000)

    @property
    def texts(self) -> frozenset[str]:
        """Return the values as text, whatever the type of a column."""
        texts = (str(self.small_id), self.email, f"{self.born:%F}", f"{self.born:%F %T}")
        return frozenset(texts)

    @property
    def person(self) -> Person:
        """Return the person as the verifier is given it."""
        ids = frozenset({str(self.small_id), str(self.long_id)})
        return Person(SUBJECT, ids, {PERSONAL: frozenset({self.email})})


def columns() -> list[HeldColumns]:
    """Return the columns that the planted person is in."""
    subjects = {SUBJECT: frozenset({SUBJECT})}
    return [HeldColumns(_FOLDERS, subjects, {PERSONAL: frozenset({PERSONAL})})]
