"""The pages of the site as text, the same for the same content.

All text is escaped, with invisible characters as visible escapes. No page runs a script or loads
anything from another host.
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lakehouse.alerts.table_states import WORST_FIRST
from lakehouse.iceberg.catalog.catalog import CATALOG_NAME
from lakehouse.site.facts import FEED, SiteFacts, TableFacts
from lakehouse.site.lineage_picture import (
    LineagePicture,
    Sources,
    column_numbers,
    draw_lineage,
)
from lakehouse.storage.byte_sizes import size_text
from lakehouse.tables.quoting import namespace_of, visible
from lakehouse.tables.upkeep import duration_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

INDEX = "index.html"
_CODE = re.compile(r"`+([^`\n]+)`+")
_SAFE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_LONGEST_NAME = 100
_MOST_DRAWN_TABLES = 60
_MOST_SAMPLE_COLUMNS = 4


def make_pages(facts: SiteFacts) -> dict[str, str]:
    """Return the text of each file by its path in the site."""
    pages = {INDEX: _index(facts)}
    for table in facts.tables.values():
        pages[page_of(table.name)] = _table(facts, table)
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


def _index(facts: SiteFacts) -> str:
    connected = {
        name for target, names in facts.sources.items() if names for name in (target, *names)
    }
    is_drawn = 0 < len(connected) <= _MOST_DRAWN_TABLES
    return _render(
        "index.html",
        site=facts,
        root="",
        layers=_layers(facts),
        counts=_counts(facts),
        lineage=_lineage(connected, facts.sources) if is_drawn else None,
    )


def _table(facts: SiteFacts, table: TableFacts) -> str:
    related, is_partial = _related(table.name, facts.sources)
    quarantine = table.quarantined.quarantine if table.quarantined else ""
    targets = {name for name, sources in facts.sources.items() if table.name in sources}
    columns = [column.name for column in table.columns]
    if declared := table.declared:
        personal = {declared.subject, *(c.name for c in declared.columns if c.personal)}
        columns = [name for name in columns if name not in personal]
    return _render(
        "table.html",
        site=facts,
        root="../",
        table=table,
        lineage=_lineage(related, facts.sources),
        lineage_is_partial=is_partial,
        sources=sorted(facts.tables.keys() & set(facts.sources.get(table.name, ()))),
        targets=sorted(facts.tables.keys() & targets - {quarantine}),
        feeds=[feed for feed in facts.feeds if feed.table == table.name],
        catalog=CATALOG_NAME,
        sample_columns=columns[:_MOST_SAMPLE_COLUMNS],
    )


def _related(name: str, sources: Sources) -> tuple[set[str], bool]:
    """Return a table with everything upstream and downstream, or, if these are too many, with
    its direct neighbours, and whether some were left out.
    """
    targets: dict[str, set[str]] = defaultdict(set)
    for target, names in sources.items():
        for source in names:
            targets[source].add(target)
    related = {name}
    for edges in (sources, targets):
        waiting = [name]
        while waiting:
            following = set(edges.get(waiting.pop(), ())) - related
            related |= following
            waiting += following
    if len(related) <= _MOST_DRAWN_TABLES:
        return related, False
    nearest = sorted({*sources.get(name, ()), *targets.get(name, ())})
    return {name, *nearest[: _MOST_DRAWN_TABLES - 1]}, True


def _lineage(names: Iterable[str], sources: Sources) -> LineagePicture:
    texts = {}
    for name in names:
        texts[name] = (namespace_of(name), name.rpartition(".")[2])
        if name.startswith(FEED):
            texts[name] = ("feed", name.removeprefix(FEED))
    return draw_lineage(texts, sources)


def _layers(facts: SiteFacts) -> list[tuple[str, list[TableFacts]]]:
    """Return the tables by layer, sources first; tables with problems are first in a layer."""
    numbers = column_numbers(facts.sources)
    layers: dict[str, list[TableFacts]] = defaultdict(list)
    for table in sorted(
        facts.tables.values(), key=lambda table: WORST_FIRST.index(table.state)
    ):
        layers[namespace_of(table.name)].append(table)

    def order(layer: str) -> tuple[float, str]:
        connected = [
            numbers[table.name] for table in layers[layer] if facts.sources.get(table.name)
        ]
        return fmean(connected) if connected else math.inf, layer

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


def number_text(number: float) -> str:
    """Return a count in full, or a measurement with few decimals."""
    if number == int(number):
        return f"{int(number):,}"
    return f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.1f}"


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
        "bytes": size_text,
        "contract": contract_of,
        "layer": namespace_of,
        "time": "{:%Y-%m-%d %H:%M} UTC".format,
        "number": number_text,
        "page": page_of,
        "prose": _prose,
        "python": repr,
        "span": duration_text,
    }
    return environment
