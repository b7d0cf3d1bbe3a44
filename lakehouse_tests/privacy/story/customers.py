"""Transactions of customers of whom some are to be erased, as files bring them, and what the tables
say of the others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from lakehouse_tests.assets.deliveries import HEADER

DAYS = ("2026-03-01", "2026-03-02", "2026-03-03")
OTHERS_DAY = "2026-03-04"
"""On which none of those who are erased bought anything."""
PARTS = 4
"""In how many partitions customers are, by number; those who are erased are all in the first."""
FAMILY = "family@example.org"
"""The address that one who is erased shares with one who remains."""
_FIRST_ID = 7_000_000_000


@dataclass(frozen=True)
class Customers:
    """Some customers by number, from 0."""

    number: int
    erased_number: int
    _transactions: Iterator[int] = field(default_factory=lambda: count(10**12), repr=False)

    @property
    def erased(self) -> range:
        """The numbers of those who are to be erased, the lowest id among them."""
        step = self.number // self.erased_number // PARTS * PARTS
        return range(0, self.erased_number * step, step)

    @property
    def erased_ids(self) -> list[str]:
        """The ids of those who are to be erased."""
        return [str(id_of(number)) for number in self.erased]

    @cached_property
    def file_of_all(self) -> str:
        """A file in which everybody buys something, and some amounts are no numbers."""
        rows = [self.row(number, DAYS[number % 2]) for number in range(self.number)]
        rows += [self.row(number, DAYS[0], amount="much") for number in (*self.erased, 3)]
        rows += [self.row(number, DAYS[1], email=FAMILY) for number in (0, 1)]
        return file_of(rows)

    @cached_property
    def later_file(self) -> str:
        """A file in which some buy again, one with an address that is none, and others on a day
        of their own.
        """
        again = [self.row(number, day) for number in self.erased for day in DAYS[1:]]
        again.append(self.row(0, DAYS[1], email=malformed_email()))
        others = [self.row(number, DAYS[1]) for number in range(3, self.number, 8)]
        own_day = [self.row(number, OTHERS_DAY) for number in range(1, self.number, 6)]
        return file_of([*again, *others, *own_day])

    def row(self, number: int, day: str, **other: str) -> str:
        """A transaction that nobody had before."""
        parts = {
            "email": email_of(number),
            "amount": f"{10 + number % 90}.50",
            "created": f"{day}T12:00:00+08:00",
            **other,
        }
        return (
            f"{next(self._transactions)},{id_of(number)},M{number % 7},food,{parts['amount']},MYR,"
            f"3,APPROVED,{day},{parts['created']},{parts['email']},Penang"
        )


def id_of(number: int) -> int:
    """Return what stands for a customer."""
    return _FIRST_ID + number


def email_of(number: int) -> str:
    """Return the address of a customer."""
    return f"c{number:05}.customer@example.org"


def malformed_email() -> str:
    """Return what the first customer gave for an address once."""
    return "c00000 at the customers"


def file_of(rows: Iterable[str], header: str = HEADER) -> str:
    """Return the text of a delivered file."""
    return "\n".join([header, *rows]) + "\n"
