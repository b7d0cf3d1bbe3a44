"""What decides every byte of a generation, and the names of its files."""

from dataclasses import asdict, dataclass
from datetime import date, timedelta

EARLIEST = date(2020, 1, 1)
"""Earlier dates count as out of range, so that no transaction may be older."""
LATEST = date(2899, 12, 31)
"""Dates that are out of range since they are in the future are later than this, whenever they
are looked at.
"""
MOST_ROWS_PER_DAY = 10**9
"""Above this, the transaction ids of neighbouring days would meet."""
TRUTH = "truth.json"


class BadArguments(ValueError):
    """Data cannot be generated as asked; says what was found and what was expected."""


@dataclass(frozen=True)
class Arguments:
    """What was asked for; the same arguments make the same bytes.

    :raises BadArguments: names the argument that cannot be.
    """

    start: date
    days: int
    rows_per_day: int
    seed: int
    gzip: bool = False

    def __post_init__(self) -> None:
        _check("days", self.days, 1, (LATEST - EARLIEST).days)
        _check("rows-per-day", self.rows_per_day, 1, MOST_ROWS_PER_DAY)
        _check("seed", self.seed, 0, 2**63 - 1)
        last = LATEST - timedelta(days=self.days - 1)
        if not EARLIEST <= self.start <= last:
            raise BadArguments(
                f"start is {self.start}; expected a day from {EARLIEST} to {last}."
            )

    @property
    def total_rows(self) -> int:
        """Rows of all files together."""
        return self.days * self.rows_per_day

    @property
    def start_day(self) -> int:
        """The first day, counted from 1970-01-01."""
        return (self.start - date(1970, 1, 1)).days

    @property
    def first_day_with_method(self) -> int:
        """Index of the first file that has the column payment_method: a third of the way
        through the days.
        """
        return self.days // 3

    @property
    def file_names(self) -> tuple[str, ...]:
        """One name for each day, in order."""
        ending = "csv.gz" if self.gzip else "csv"
        days = (self.start + timedelta(days=day) for day in range(self.days))
        return tuple(f"bnpl_{day}.{ending}" for day in days)

    def as_json(self) -> dict[str, str | int | bool]:
        """Return the arguments as `truth.json` keeps them."""
        return {**asdict(self), "start": self.start.isoformat()}


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadArguments(f"{name} is {value}; expected {least} to {most}.")
