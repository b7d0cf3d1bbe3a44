"""The files of a new feed: its tables, and a test with a sample without personal values."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.scaffolding.assets_package import AssetsFolder
from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes, unclear_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.python_text import comments, render
from lakehouse.tables.feed import CSV_FORMATS
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS

_NEWEST = (
    "_ingested_at",
    "_source_modified_at",
    "_source_file",
    "_source_row",
    "_source_sha256",
)
"""The order of deliveries, as of a table that is merged by its key."""
_CONFIRM = "confirm or correct, then delete these lines:"
_SAMPLE_ROWS = 5
_JSON_STRINGS = ("string", "date", "timestamp", "timestamp_ntz")
_Row = Mapping[str, str | None]


def feed_files(plan: FeedPlan, folder: AssetsFolder) -> dict[Path, str]:
    """Return the text of all files of a new feed by their paths; nothing is written."""
    rows = _sample_rows(plan)
    is_csv = plan.samples.is_csv
    sample = folder.tests / f"{plan.name}_sample.{'csv' if is_csv else 'jsonl'}"
    test = render(
        "test.py.jinja",
        plan=plan,
        package=folder.package,
        has_fixtures=folder.has_fixtures,
        sample=sample.name,
        rows=len(rows),
    )
    texts = {
        folder.table_path(plan.bronze): _bronze_text(plan),
        folder.table_path(plan.silver): _silver_text(plan, folder.package),
        folder.tests / f"test_{plan.name}.py": test,
        sample: _csv(rows, plan) if is_csv else _json_lines(rows, plan),
    }
    return folder.completed(texts)


def _bronze_text(plan: FeedPlan) -> str:
    """Return the text of the file that declares the feed."""
    formats = list(plan.samples.feed.formats)
    return render(
        "bronze.py.jinja",
        plan=plan,
        days=plan.days,
        notes=comments(f"Guessed from {plan.source}; {_CONFIRM}", bronze_notes(plan)),
        formats=[] if set(formats) <= set(CSV_FORMATS) else formats,
        delimiter=plan.samples.feed.delimiter,
        day_sql=plan.days and (conversion(plan.days.column) or _raw_sql(plan.days.column)),
    )


def _silver_text(plan: FeedPlan, package: str) -> str:
    """Return the text of the file that declares the typed table."""
    notes = comments(f"Guessed from {plan.source}; {_CONFIRM}", silver_notes(plan))
    notes += comments("Text, until its form is declared:", unclear_notes(plan))
    return render(
        "silver.py.jinja",
        plan=plan,
        package=package,
        days=plan.days,
        description=_description(plan),
        notes=notes,
        row_key=list(plan.key or SOURCE_COLUMNS),
        newest=_newest(plan),
        rules=_rules(plan),
        changed={
            column.name: conversion(column) or _raw_sql(column)
            for column in plan.columns
            if conversion(column) or column.is_renamed
        },
        dropped=_dropped(plan),
    )


def _description(plan: FeedPlan) -> str:
    if plan.key:
        newest = f"the newest by {plan.version.name}" if plan.version else "as last delivered"
        return f"One row for each {' and '.join(plan.key)}, {newest}."
    return f"One row for each delivered line of the feed `{plan.name}`, typed."


def _newest(plan: FeedPlan) -> list[str]:
    """Return the columns that order versions of a row, if the table needs to declare them."""
    if plan.key and plan.version:
        return [plan.version.name, *_NEWEST]
    if plan.days:
        return [*_NEWEST] if plan.key else []
    return [] if plan.key else [*_NEWEST[:1]]


def _rules(plan: FeedPlan) -> list[str]:
    """Return the rules: the key, its day and numbers without gaps are required."""
    filled = [*plan.key]
    if plan.days is not None and plan.key:
        filled.append(plan.days.silver_name)
    numbers = ("int", "bigint", "double", "decimal")
    filled += [c.name for c in plan.columns if c.is_filled and c.type.startswith(numbers)]
    rules = [f"*map(not_null, {[*dict.fromkeys(filled)]})"] if filled else []
    if plan.key:
        rules.append(f"unique({', '.join(map(repr, plan.key))})")
    if plan.days is not None and plan.key:
        rules.append(
            f'dated({plan.days.silver_name!r}, since="{plan.days.since}",'
            ' until="_ingested_at", time_zone=RAW.wall_time_zone)'
        )
    return rules


def _dropped(plan: FeedPlan) -> list[str]:
    """Return the columns that the table does not have; reading versions drops them itself."""
    if plan.days is None or plan.key:
        return []
    names = [column.in_bronze for column in plan.columns if column.is_renamed]
    return names if plan.days.name == plan.days.silver_name else [*names, plan.days.name]


def _raw_sql(column: PlannedColumn) -> str:
    """Return the SQL of what is delivered, as code."""
    name = column.in_bronze
    return repr(identifier(name) if column.is_renamed else name)


def conversion(column: PlannedColumn) -> str:
    """Return the call that converts a column; empty if casts read what is delivered."""
    sql = _raw_sql(column)
    if column.has_blanks:
        sql = f"blank_as_null({', '.join([sql, *map(repr, column.profile.nothing)])})"
    function, arguments = column.reading.function, column.reading.arguments
    if function:
        return f"{function}({', '.join([sql, *arguments])})"
    return sql if column.has_blanks else ""


def _sample_rows(plan: FeedPlan) -> list[_Row]:
    """Return the first rows with replaced values of people.

    Other text stays: a remark can contain a name.
    """
    rows = plan.samples.texts.slice(0, _SAMPLE_ROWS).to_pylist()
    return [
        {c.delivered: _masked(c, row[c.delivered], number, plan) for c in plan.columns}
        for number, row in enumerate(rows, start=1)
    ]


def _masked(column: PlannedColumn, text: str | None, number: int, plan: FeedPlan) -> str | None:
    """Return a value, or an invented one if it identifies the person of a row."""
    is_subject = column is plan.subject
    if not text or not (column.why_personal or is_subject):
        return text
    if "@" in text:
        return f"person{number}@example.com"
    if column.reading.days:
        return f"1970-01-{number:02}"
    is_number = column.bronze_type not in _JSON_STRINGS
    return str(number) if is_subject or is_number else f"{column.name} {number}"


def _csv(rows: Iterable[_Row], plan: FeedPlan) -> str:
    target = io.StringIO()
    writer = csv.writer(target, delimiter=plan.samples.feed.delimiter, lineterminator="\n")
    writer.writerow(column.delivered for column in plan.columns)
    writer.writerows(row.values() for row in rows)
    return target.getvalue()


def _json_lines(rows: Iterable[_Row], plan: FeedPlan) -> str:
    lines = []
    for row in rows:
        values = (
            f"{json.dumps(column.delivered)}: {_json_value(row[column.delivered], column)}"
            for column in plan.columns
        )
        lines.append(f"{{{', '.join(values)}}}\n")
    return "".join(lines)


def _json_value(text: str | None, column: PlannedColumn) -> str:
    if text is None or column.bronze_type == "binary":
        return "null"
    if column.bronze_type in _JSON_STRINGS:
        return json.dumps(text, ensure_ascii=False)
    return "null" if text in ("nan", "inf", "-inf") else text
