"""The targets of the benchmarks, as maximum values, from `targets.csv`."""

import csv
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

TARGETS_FILE = Path(__file__).with_name("targets.csv")


@dataclass(frozen=True)
class Target:
    """The value that was requested, and the limit that a benchmark enforces; None if there is none."""

    requested: float | None = None
    enforced: float | None = None

    def is_met_by(self, value: float) -> bool:
        """Whether a value is within the enforced limit."""
        return self.enforced is None or value <= self.enforced


NO_TARGET = Target()


def targets_of(benchmark: str) -> dict[str, Target]:
    """Return the targets of a benchmark by name."""
    with TARGETS_FILE.open(encoding="utf-8", newline="") as file:
        return {
            row["name"]: Target(_number(row["requested"]), _number(row["enforced"]))
            for row in csv.DictReader(file)
            if row["benchmark"] == benchmark
        }


def _number(text: str) -> float | None:
    return float(Fraction(text)) if text else None
