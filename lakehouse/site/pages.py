"""The pages of the site as text, the same for the same content.

All text is escaped, with invisible characters as visible escapes. No page runs a script or loads
anything from another host.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from lakehouse.alerts.table_states import WORST_FIRST
from lakehouse.iceberg.catalog.catalog import CATALOG_NAME
from lakehouse.iceberg.metadata.time_series import Series, greatest_of, last_of, thin_out
from lakehouse.site.facts import SiteFacts, TableFacts
from lakehouse.site.lineage_picture import (
    LineagePicture,
    Node,
    column_numbers,
    draw_lineage,
    related,
)
from lakehouse.storage.byte_sizes import size_text
from lakehouse.tables.quoting import dotted, identifier, namespace_of, visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True)
class Frame:
    """The area of a plot, in pixels from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Line:
    """A line as an SVG path, and its points."""

    path: str
    points: tuple[tuple[float, float], ...]


def draw_line(
    series: Series, frame: Frame, bounds: tuple[float, float], *, is_step: bool
) -> Line:
    """Draw a series that is not empty.

    :param bounds: the values at the bottom and at the top of the frame.
    :param is_step: whether a value applies until the next one; otherwise points are joined.
    """
    begin, end = series[0][0], series[-1][0]
    low, high = bounds
    points = []
    for at, value in series:
        time_share = (at - begin) / (end - begin) if end > begin else 1.0
        value_share = (value - low) / (high - low) if high > low else 0.5
        x = frame.left + (frame.right - frame.left) * time_share
        y = frame.bottom - (frame.bottom - frame.top) * value_share
        points.append((round(x, 1), round(y, 1)))
    (first_x, first_y), *following = points
    steps = [f"M{first_x} {first_y}"]
    steps += [f"H{x} V{y}" if is_step else f"L{x} {y}" for x, y in following]
    return Line(" ".join(steps), tuple(points))


INDEX, QUALITY = "index.html", "quality.html"
_CODE = re.compile(r"`+([^`\n]+)`+")
_SAFE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_LONGEST_NAME = 100
_PLOT, _SPARK = Frame(8, 26, 452, 130), Frame(3, 3, 107, 21)
_MOST_POINTS, _MOST_SPARK_POINTS, _MOST_LISTED_POINTS = 90, 40, 30
_MOST_DRAWN_TABLES = 60
_MOST_SAMPLE_COLUMNS = 4
_FEED = "feed "
_DAYS = 14


def make_pages(facts: SiteFacts) -> dict[str, str]:
    """Return the text of each file by its path in the site."""
    sources = _with_feeds(facts)
    pages = {INDEX: _index(facts, sources), QUALITY: _quality(facts, sources)}
    for table in facts.tables.values():
        pages[page_of(table.name)] = _table(facts, sources, table)
        if table.contract:
            pages[contract_of(table.name)] = table.contract
    return pages


def page_of(table: str) -> str:
    """Return the path of a table's page, with a digest of a name that is no safe file name."""
    if _SAFE_NAME.fullmatch(table) and len(table) <= _LONGEST_NAME:
        return f"tables/{table}.html"
    plain = re.sub(r"[^a-z0-9_.]+", "-", table.lower()).strip("-.")[:_LONGEST_NAME]
    digest = hashlib.sha256(table.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"tables/{plain}-{digest}.html"


def contract_of(table: str) -> str:
    """Return the path of a table's contract."""
    return f"{page_of(table).removesuffix('.html')}.odcs.yaml"


def _with_feeds(facts: SiteFacts) -> dict[str, set[str]]:
    """Return the sources of each table, including feeds."""
    sources = {name: set(names) for name, names in facts.sources.items()}
    for feed in facts.feeds:
        sources.setdefault(feed.table, set()).add(f"{_FEED}{feed.name}")
    return sources


def _index(facts: SiteFacts, sources: Mapping[str, set[str]]) -> str:
    connected = {
        name for target, names in sources.items() if names for name in (target, *names)
    }
    is_drawn = 0 < len(connected) <= _MOST_DRAWN_TABLES
    return _render(
        "index.html",
        site=facts,
        root="",
        layers=_layers(facts, sources),
        counts=_counts(facts),
        lineage=_lineage(facts, sources, connected) if is_drawn else None,
    )


def _quality(facts: SiteFacts, sources: Mapping[str, set[str]]) -> str:
    last = facts.now.date()
    rows = []
    for _, tables in _layers(facts, sources):
        for table in tables:
            is_checked = len(table.checks) > len(table.checks_that("not run"))
            if is_checked or table.trend.failed_share:
                rows.append((table, _greatest_by_day(table.trend.failed_share)))
    days = [last - timedelta(days=back) for back in reversed(range(_DAYS))]
    return _render("quality.html", site=facts, root="", rows=rows, days=days)


def _table(facts: SiteFacts, sources: Mapping[str, set[str]], table: TableFacts) -> str:
    names, is_partial = related(table.name, sources, _MOST_DRAWN_TABLES)
    declared, quarantine = table.declared, None
    columns = [column.name for column in table.columns]
    if declared:
        personal = {declared.subject, *(c.name for c in declared.columns if c.personal)}
        columns = [name for name in columns if name not in personal]
        quarantine = declared.quarantine and facts.tables.get(declared.quarantine.name)
    targets = [
        name
        for name in sources
        if table.name in sources[name] and not (quarantine and name == quarantine.name)
    ]
    return _render(
        "table.html",
        site=facts,
        root="../",
        table=table,
        quarantine=quarantine,
        lineage=_lineage(facts, sources, names, table.name),
        lineage_is_partial=is_partial,
        sources=_with_pages(facts, sources.get(table.name, ())),
        targets=_with_pages(facts, targets),
        feeds=[feed for feed in facts.feeds if feed.table == table.name],
        catalog=CATALOG_NAME,
        sample_columns=columns[:_MOST_SAMPLE_COLUMNS],
    )


def _with_pages(facts: SiteFacts, names: Iterable[str]) -> list[str]:
    return sorted(facts.tables.keys() & set(names))


def _lineage(
    facts: SiteFacts, sources: Mapping[str, set[str]], names: Iterable[str], current: str = ""
) -> LineagePicture:
    root = "../" if current else ""
    linked = set(_with_pages(facts, names))
    nodes = []
    for name in names:
        if name.startswith(_FEED):
            nodes.append(Node(name, name.removeprefix(_FEED), "feed"))
            continue
        href = f"{root}{page_of(name)}" if name in linked else ""
        short_name = name.rpartition(".")[2]
        nodes.append(Node(name, short_name, namespace_of(name), href, name == current))
    return draw_lineage(nodes, sources)


def _layers(
    facts: SiteFacts, sources: Mapping[str, set[str]]
) -> list[tuple[str, list[TableFacts]]]:
    """Return the tables by layer, sources first; tables with problems are first in a layer."""
    numbers = column_numbers(sources)
    layers: dict[str, list[TableFacts]] = defaultdict(list)
    for table in sorted(
        facts.tables.values(), key=lambda table: WORST_FIRST.index(table.state)
    ):
        layers[namespace_of(table.name)].append(table)

    def order(layer: str) -> tuple[bool, float, str]:
        connected = [
            name for name in numbers if sources.get(name) and namespace_of(name) == layer
        ]
        total = sum(numbers[name] for name in connected)
        return not connected, total / max(len(connected), 1), layer

    return [(layer, layers[layer]) for layer in sorted(layers, key=order)]


def _counts(facts: SiteFacts) -> dict[str, int]:
    tables = facts.tables.values()
    states = [table.state for table in tables]
    late = [any(one.is_late for one in table.condition.freshness) for table in tables]
    incidents = sum(len(table.condition.incidents) for table in tables) + len(facts.incidents)
    return {
        "tables": len(states),
        "late": late.count(True),
        "stale": states.count("stale"),
        "blocked": states.count("blocked"),
        "damaged": states.count("damaged"),
        "failed": states.count("failed") + states.count("error"),
        "failed checks": sum(len(table.checks_that("failed")) for table in tables),
        "warnings": sum(len(table.checks_that("warned")) for table in tables),
        "rows in quarantine": sum(t.quarantined.rows for t in tables if t.quarantined),
        "open incidents": incidents,
    }


def _greatest_by_day(shares: Series) -> dict[date, float]:
    greatest: dict[date, float] = {}
    for at, share in shares:
        greatest[at.date()] = max(share, greatest.get(at.date(), 0.0))
    return greatest


def share_text(share: float | None) -> str:
    """Return a share as percent; a small one is not 0 %."""
    if share is None:
        return ""
    percent = share * 100
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def number_text(number: float) -> str:
    """Return a count in full, or a measurement with few decimals."""
    if number == int(number):
        return f"{int(number):,}"
    return f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.1f}"


def span_text(span: timedelta) -> str:
    """Return a duration: `36 hours`, `2 days`."""
    hours = span / timedelta(hours=1)
    number, noun = (hours / 24, "day") if hours >= 48 else (hours, "hour")
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _time_text(timestamp: datetime) -> str:
    return f"{timestamp:%Y-%m-%d %H:%M} UTC"


_TEXTS: Mapping[str, Callable[[float], str]] = {
    "rows": number_text,
    "bytes": size_text,
    "share": share_text,
}
"""The format of each kind of series."""


def _thin(series: Series, most: int, kind: str) -> Series:
    return thin_out(series, most, greatest_of if kind == "share" else last_of)


def _plot(series: Series, kind: str) -> Line:
    """Draw a series above 0."""
    highest = greatest_of(series)[1] or 1.0
    points = _thin(series, _MOST_POINTS, kind)
    return draw_line(points, _PLOT, (0, highest), is_step=kind != "share")


def _spark(series: Series, kind: str) -> Line:
    """Draw a series between its least and greatest values."""
    values = [value for _, value in series]
    points = _thin(series, _MOST_SPARK_POINTS, kind)
    return draw_line(points, _SPARK, (min(values), max(values)), is_step=kind != "share")


def _listed(series: Series, kind: str) -> list[tuple[str, str]]:
    """Return the newest points as text, newest first."""
    points = _thin(series, _MOST_LISTED_POINTS, kind)
    return [(_time_text(at), _TEXTS[kind](value)) for at, value in reversed(points)]


def _summary(series: Series, kind: str) -> str:
    """Describe a line for screen readers."""
    text = _TEXTS[kind]
    if kind == "share":
        return f"{text(series[-1][1])} now, at most {text(greatest_of(series)[1])}"
    return f"{text(series[0][1])} at first, {text(series[-1][1])} now"


def _quoted_column(name: str) -> str:
    """Quote a name as Trino and DuckDB do."""
    return '"' + name.replace('"', '""') + '"'


def _prose(text: str) -> "Markup":
    """Return a text with names in backticks as code."""
    from markupsafe import Markup, escape

    parts = []
    for at, part in enumerate(_CODE.split(_finalize(text))):
        parts.append(Markup("<code>{}</code>").format(part) if at % 2 else escape(part))
    return Markup("").join(parts)


def _finalize(value: Any) -> Any:
    """Show invisible characters of a text as escapes, except line breaks."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(visible(line.expandtabs(4)) for line in value.split("\n"))
    return value


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lakehouse.site"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "backtick": identifier,
        "backticks": dotted,
        "bytes": size_text,
        "contract": contract_of,
        "highest": lambda series, kind: _TEXTS[kind](greatest_of(series)[1]),
        "layer": namespace_of,
        "listed": _listed,
        "time": _time_text,
        "number": number_text,
        "page": page_of,
        "plot": _plot,
        "prose": _prose,
        "python": repr,
        "quoted": lambda name: ".".join(map(_quoted_column, name.split("."))),
        "quoted_column": _quoted_column,
        "share": share_text,
        "spark": _spark,
        "span": span_text,
        "summary": _summary,
    }
    return environment
