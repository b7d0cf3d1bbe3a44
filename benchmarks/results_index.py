"""Index page of all results: dates, and targets that are missed.

`report` updates it with each result; to update it manually: `python -m benchmarks.results_index`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results")
INDEX = "README.md"
_MEASURED = re.compile(
    r"Measured on (?P<day>\S+) at (?P<commit>[^;]+); the load was (?P<load>\S+) on"
)
MISSED = " (missed)"
"""Marks a requested or enforced target that the measured value exceeds."""
_WHAT_IT_IS = """\
# Results

This page is updated with each result. The table shows the day and commit of each measurement (`+`: with modified files), and the load of the machine at its start; on two cores, a load above 1 means that something else was running.
[`targets.csv`](../targets.csv) has the targets: the requested value, and the limit that a benchmark enforces, and the reason if they differ. Ratios of times refer to the first row of their table.
"""


@dataclass(frozen=True)
class Compared:
    """A value with its targets, as printed: the title of its table, and its name."""

    title: str
    name: str
    measured: str
    requested: str
    enforced: str


def compared_values(result: str) -> Iterator[Compared]:
    """Yield all values of a result that have a target."""
    title, has_targets = "", False
    for line in result.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if line.startswith("## "):
            title, has_targets = line.removeprefix("## "), False
        elif cells[-2:] == ["requested", "enforced"]:
            has_targets = True
        elif has_targets and len(cells) > 1 and cells[-2][:1].isdigit():
            yield Compared(title, cells[0], *cells[-3:])


def index_of(results: Sequence[Path]) -> str:
    """Return the index page of results."""
    of_each: list[list[str]] = []
    missed: dict[str, list[list[str]]] = {"enforced": [], "requested": []}
    for path in sorted(results):
        text = path.read_text(encoding="utf-8")
        measured = _MEASURED.search(text)
        assert measured, f"{path}: it does not say when it was measured"
        values = list(compared_values(text))
        link = f"[{path.stem}]({path.name})"
        limits = [one.enforced for one in values if one.enforced]
        met = len([limit for limit in limits if not limit.endswith(MISSED)])
        met_limits = f"{met} of {len(limits)}" if limits else ""
        of_each.append([link, *measured.group("day", "commit", "load"), met_limits])
        for one in values:
            for kind, limit in (("enforced", one.enforced), ("requested", one.requested)):
                if limit.endswith(MISSED):
                    name, limit = f"{one.title}: {one.name}", limit.removesuffix(MISSED)
                    missed[kind].append([link, name, one.measured, limit])
    parts = [_WHAT_IT_IS, _table(["result", "day", "commit", "load", "limits met"], of_each)]
    for kind, rows in missed.items():
        if rows:
            parts.append(f"## Missed {kind} targets\n")
            parts.append(_table(["result", "value", "measured", kind], rows))
    return "\n".join(parts)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


def write_index(folder: Path = RESULTS) -> None:
    """Write the index page of a results folder."""
    results = [path for path in folder.glob("*.md") if path.name != INDEX]
    (folder / INDEX).write_text(index_of(results), encoding="utf-8")


if __name__ == "__main__":
    write_index()
