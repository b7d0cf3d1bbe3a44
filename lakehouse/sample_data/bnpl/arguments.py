"""The arguments of a generation and the names of its files."""

from dataclasses import asdict, dataclass
from datetime import date, timedelta

EARLIEST = date(2020, 1, 1)
"""Earlier dates are out of range, so no transaction is older."""
LATEST = date(2899, 12, 31)
"""Generated future dates are later than this, so they are out of range at any time."""
MOST_ROWS_PER_DAY = 10**9
"""With more rows, the transaction ids of adjacent days would overlap."""
TRUTH = "truth.json"


class BadArguments(ValueError):
    """Data cannot be generated with these arguments."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a generation; equal arguments generate equal bytes.

    :raises BadArguments: states the invalid argument.
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
                f"--start is {self.start}; expected a day from {EARLIEST} to {last}."
            )

    @property
    def total_rows(self) -> int:
        """The total number of rows."""
        return self.days * self.rows_per_day

    @property
    def start_day(self) -> int:
        """The first day, in days since 1970-01-01."""
        return (self.start - date(1970, 1, 1)).days

    @property
    def first_day_with_method(self) -> int:
        """The index of the first file with payment_method: after a third of the days."""
        return self.days // 3

    @property
    def file_names(self) -> tuple[str, ...]:
        """One name per day, in order."""
        ending = "csv.gz" if self.gzip else "csv"
        days = (self.start + timedelta(days=day) for day in range(self.days))
        return tuple(f"bnpl_{day}.{ending}" for day in days)

    def as_json(self) -> dict[str, str | int | bool]:
        """Return the arguments as stored in `truth.json`."""
        return {**asdict(self), "start": self.start.isoformat()}


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadArguments(f"--{name} is {value}; expected {least} to {most}.")
