"""The pages of the site as text: the same facts give the same pages.

Every text that a table, a file or a person brought is escaped, and what cannot be seen in it is
written as an escape; no page asks for anything of another host, and none runs a script.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from lakehouse.alerts.table_states import WORST_FIRST
from lakehouse.iceberg.metadata.time_series import Series, greatest_of, last_of, thin_out
from lakehouse.site.facts import SiteFacts, TableFacts
from lakehouse.site.line_plot import LinePlot, line_plot, sparkline
from lakehouse.site.lineage_picture import (
    LineagePicture,
    Node,
    column_numbers,
    draw_lineage,
    related,
)
from lakehouse.site.sample_queries import sample_queries
from lakehouse.storage.byte_sizes import size_text
from lakehouse.tables.escaping import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

INDEX, QUALITY = "index.html", "quality.html"
_CODE = re.compile(r"`+([^`\n]+)`+")
_SAFE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_LONGEST_NAME = 100
_MOST_POINTS, _MOST_SMALL_POINTS = 90, 40
_MOST_LISTED_POINTS = 30
_MOST_DRAWN_TABLES = 60
_FEED = "feed "
_DAYS = 14


def make_pages(facts: SiteFacts) -> dict[str, str]:
    """Return the text of each page by its path in the site: an index, a page for each table
    with its contract beside it, and one of quality over time.
    """
    site = _Site(facts)
    pages = {INDEX: site.index(), QUALITY: site.quality()}
    for table in facts.tables:
        pages[page_of(table.name)] = site.table(table)
        if table.contract:
            pages[contract_of(table.name)] = table.contract
    return pages


def page_of(table: str) -> str:
    """Return the path of a table's page; a name that no file can have everywhere, or that is
    another's but for case, is told by a digest.
    """
    if _SAFE_NAME.fullmatch(table) and len(table) <= _LONGEST_NAME:
        return f"tables/{table}.html"
    plain = re.sub(r"[^a-z0-9_.]+", "-", table.lower()).strip("-.")[:_LONGEST_NAME]
    digest = hashlib.sha256(table.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"tables/{plain}-{digest}.html"


def contract_of(table: str) -> str:
    """Return the path of a table's contract."""
    return f"{page_of(table).removesuffix('.html')}.odcs.yaml"


@dataclass(frozen=True)
class DayCell:
    """The greatest share of rows that failed a check of a table on a day; None where nothing
    was measured.
    """

    day: date
    share: float | None


class _Site:
    """The pages of one state of the site."""

    def __init__(self, facts: SiteFacts) -> None:
        self._facts = facts
        self._by_name = {table.name: table for table in facts.tables}
        self._sources = _with_feeds(facts)
        self._edges = [
            (source, target)
            for target, names in sorted(self._sources.items())
            for source in sorted(names)
        ]

    def index(self) -> str:
        # What is computed from nothing, and nothing from it, would only be in the way.
        drawn = {name for edge in self._edges for name in edge}
        is_drawn = 0 < len(drawn) <= _MOST_DRAWN_TABLES
        return self._render(
            "index.html",
            root="",
            layers=self._layers(),
            counts=_counts(self._facts),
            lineage=self._lineage(drawn, "", "") if is_drawn else None,
        )

    def quality(self) -> str:
        measured = []
        for _, tables in self._layers():
            measured += [table for table in tables if _is_measured(table)]
        days = _last_days(self._facts.now)
        rows = [(table, _day_cells(table.trend.failed_share, days)) for table in measured]
        return self._render("quality.html", root="", rows=rows, days=days)

    def table(self, table: TableFacts) -> str:
        names, is_part = related(table.name, self._sources, _MOST_DRAWN_TABLES)
        return self._render(
            "table.html",
            root="../",
            table=table,
            lineage=self._lineage(names, table.name, "../"),
            lineage_is_part=is_part,
            sources=self._neighbours(self._sources.get(table.name, ())),
            targets=self._neighbours(self._readers(table)),
            feeds=[feed for feed in self._facts.feeds if feed.table == table.name],
            queries=sample_queries(table, self._facts.catalog_uri),
            quarantined=self._by_name.get(table.quarantine_of),
        )

    def _readers(self, table: TableFacts) -> list[str]:
        """Return the tables that are computed from one; its own quarantine is filled by it."""
        quarantine = table.quarantine.table if table.quarantine else ""
        return [
            name
            for name, sources in self._sources.items()
            if table.name in sources and name != quarantine
        ]

    def _neighbours(self, names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if name in self._by_name)

    def _render(self, template: str, **values: Any) -> str:
        return _environment().get_template(template).render(site=self._facts, **values)

    def _lineage(self, names: Iterable[str], current: str, root: str) -> LineagePicture:
        nodes = []
        for name in sorted(names):
            if name.startswith(_FEED):
                nodes.append(Node(name, name.removeprefix(_FEED), "feed"))
                continue
            layer, _, short = name.rpartition(".")
            href = f"{root}{page_of(name)}" if name in self._by_name else ""
            nodes.append(Node(name, short, layer, href, is_current=name == current))
        return draw_lineage(nodes, self._sources)

    def _layers(self) -> list[tuple[str, list[TableFacts]]]:
        """Return the tables by layer; a layer comes after those that it is computed from, and
        those that nothing is computed from come last.
        """
        ends = {end for edge in self._edges for end in edge}
        numbers = column_numbers(ends, self._edges)
        layers: dict[str, list[TableFacts]] = {}
        for table in sorted(self._facts.tables, key=lambda one: WORST_FIRST.index(one.state)):
            layers.setdefault(table.layer, []).append(table)

        def order(layer: str) -> tuple[bool, float, str]:
            known = [numbers[table.name] for table in layers[layer] if table.name in numbers]
            return not known, sum(known) / len(known) if known else 0.0, layer

        return [(layer, layers[layer]) for layer in sorted(layers, key=order)]


def _with_feeds(facts: SiteFacts) -> dict[str, set[str]]:
    """Return the sources of tables, feeds among them."""
    sources = {name: set(names) for name, names in facts.sources.items()}
    for feed in facts.feeds:
        sources.setdefault(feed.table, set()).add(f"{_FEED}{feed.name}")
    return sources


def _counts(facts: SiteFacts) -> dict[str, int]:
    """Return what there is of each kind that somebody has to look at."""
    states = [table.state for table in facts.tables]
    incidents = sum(len(table.incidents) for table in facts.tables) + len(facts.incidents)
    return {
        "tables": len(states),
        "late": sum(any(one.is_late for one in table.freshness) for table in facts.tables),
        "stale": states.count("stale"),
        "blocked": states.count("blocked"),
        "damaged": states.count("damaged"),
        "failed": states.count("failed") + states.count("error"),
        "failed checks": sum(len(table.failed_checks) for table in facts.tables),
        "warnings": sum(len(table.warned_checks) for table in facts.tables),
        "rows in quarantine": sum(
            table.quarantine.rows for table in facts.tables if table.quarantine
        ),
        "open incidents": incidents,
    }


def _is_measured(table: TableFacts) -> bool:
    was_checked = any(check.outcome != "not run" for check in table.checks)
    return was_checked or bool(table.trend.failed_share)


def _last_days(now: datetime) -> list[date]:
    return [now.date() - timedelta(days=back) for back in reversed(range(_DAYS))]


def _day_cells(shares: Series, days: Sequence[date]) -> list[DayCell]:
    greatest: dict[date, float] = {}
    for at, share in shares:
        greatest[at.date()] = max(share, greatest.get(at.date(), 0.0))
    return [DayCell(day, greatest.get(day)) for day in days]


def share_text(share: float | None) -> str:
    """Write a share of rows as percent; a small one is not written as none."""
    if share is None:
        return ""
    percent = share * 100
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def number_text(number: float) -> str:
    """Write a count in full, or a measure with few decimals."""
    if number == int(number):
        return f"{int(number):,}"
    return f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.1f}"


def short_number(number: float) -> str:
    """Write a number for an axis: `1.5 M`."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:g}{unit}"
    return f"{number:g}"


def span_text(span: timedelta) -> str:
    """Write a span of time: `36 hours`, `2 days`."""
    hours = span / timedelta(hours=1)
    number, noun = (hours / 24, "day") if hours >= 48 else (hours, "hour")
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def moment_text(moment: datetime | None) -> str:
    """Write a moment in UTC."""
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def _thin(series: Series, most: int, *, is_kept: bool) -> Series:
    return thin_out(series, most, last_of if is_kept else greatest_of)


def _plot(series: Series, kind: str) -> LinePlot:
    is_kept = kind != "share"
    step = 1024.0 if kind == "bytes" else 1000.0
    text = short_number if kind == "rows" else _TEXTS[kind]
    thinned = _thin(series, _MOST_POINTS, is_kept=is_kept)
    return line_plot(thinned, text, is_kept=is_kept, step=step)


def _spark(series: Series, kind: str) -> tuple[str, tuple[float, float] | None]:
    is_kept = kind != "share"
    thinned = _thin(series, _MOST_SMALL_POINTS, is_kept=is_kept)
    return sparkline(thinned, is_kept=is_kept)


def _listed(series: Series, kind: str) -> list[tuple[str, str]]:
    """Return the newest points of a series as people read them, the newest first."""
    points = _thin(series, _MOST_LISTED_POINTS, is_kept=kind != "share")
    return [(moment_text(at), _TEXTS[kind](value)) for at, value in reversed(points)]


def _ends(series: Series, kind: str) -> str:
    """Say in words what a line shows, to who does not see it."""
    text = _TEXTS[kind]
    if kind == "share":
        return f"{text(series[-1][1])} now, at most {text(greatest_of(series)[1])}"
    return f"{text(series[0][1])} at first, {text(series[-1][1])} now"


def _breaks(name: str) -> "Markup":
    """Return a name that a browser may break after each part of it."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[._])", name)
    return Markup("<wbr>").join(escape(visible(part)) for part in parts)


def _prose(text: str) -> "Markup":
    """Return a text in which names that stand in backticks are set as code."""
    from markupsafe import Markup, escape

    shown = []
    for number, part in enumerate(_CODE.split(_finalize(text))):
        is_code = number % 2 == 1
        shown.append(Markup("<code>{}</code>").format(part) if is_code else escape(part))
    return Markup("").join(shown)


def _counted(noun: str, number: int) -> str:
    """Return what is counted, `failed checks`, as one of it where there is one."""
    return re.sub(r"s(?= in |$)", "", noun) if number == 1 else noun


def _finalize(value: Any) -> Any:
    """Write what cannot be seen in a text as an escape; the lines of a text stay lines."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(visible(line.expandtabs(4)) for line in value.split("\n"))
    return value


_TEXTS: Mapping[str, Callable[[float], str]] = {
    "rows": number_text,
    "bytes": size_text,
    "share": share_text,
}
"""How the values of each kind of series are written."""
_FILTERS: Mapping[str, Any] = {
    "ends": _ends,
    "breaks": _breaks,
    "bytes": size_text,
    "contract": contract_of,
    "counted": _counted,
    "listed": _listed,
    "moment": moment_text,
    "number": number_text,
    "page": page_of,
    "plot": _plot,
    "prose": _prose,
    "share": share_text,
    "spark": _spark,
    "span": span_text,
}


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
    environment.filters |= _FILTERS
    return environment
