"""Index page of all results: dates, and limits that are exceeded.

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
_BROKEN = " (broken)"
_WHAT_IT_IS = """\
# Results

This page is updated with each result. The table shows the day and commit of each measurement (`+`: with modified files), and the load of the machine at its start; on two cores, a load above 1 means that something else was running.
A promise is an enforced limit of a ratio; ratios of times refer to the first row of their table.
"""


@dataclass(frozen=True)
class Promise:
    """A limit: the title of its table, its name, and both numbers as printed."""

    title: str
    of: str
    found: str
    promised: str
    is_met: bool


def promises_of(result: str) -> Iterator[Promise]:
    """Yield all limits in a result."""
    title = ""
    for line in result.splitlines():
        if line.startswith("## "):
            title = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        promised = cells[-1].removesuffix(_BROKEN)
        if (
            line.startswith("|")
            and re.fullmatch(r"\d+\.\d+", promised)
            and len(cells) in (3, 6)
        ):
            yield Promise(title, cells[0], cells[-2], promised, not cells[-1].endswith(_BROKEN))


def index_of(results: Sequence[Path]) -> str:
    """Return the index page of results."""
    of_each, broken = [], []
    for path in sorted(results):
        text = path.read_text(encoding="utf-8")
        measured = _MEASURED.search(text)
        assert measured, f"{path}: it does not say when it was measured"
        promises = list(promises_of(text))
        link = f"[{path.stem}]({path.name})"
        kept = f"{sum(one.is_met for one in promises)} of {len(promises)}" if promises else ""
        of_each.append([link, *measured.group("day", "commit", "load"), kept])
        broken += [
            [link, f"{one.title}: {one.of}", one.found, one.promised]
            for one in promises
            if not one.is_met
        ]
    parts = [_WHAT_IT_IS, _table(["result", "day", "commit", "load", "promises kept"], of_each)]
    if broken:
        heads = ["result", "what", "found", "promised"]
        parts.append("## Promises that do not hold\n")
        parts.append(_table(heads, broken))
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
