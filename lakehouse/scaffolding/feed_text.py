"""The files of a new feed: its tables, and a test with a sample without personal values."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.scaffolding.assets_package import FIXTURES, AssetsFolder
from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes, unclear_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.python_text import CONFIRM, AssetModule, comments, docstring
from lakehouse.tables.feed import CSV_FORMATS
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS

_MODIFIED = "_source_modified_at"
_NEWEST = ("_ingested_at", _MODIFIED, "_source_file", "_source_row", "_source_sha256")
"""The order of deliveries, as of a table that is merged by its key."""
_CONVERSIONS = """\
from lakehouse.tables.written_forms import blank_as_null, decimal_comma, iso_date, whole_number"""
_BRONZE_IMPORTS = f"""\
from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.casts import cast_sql
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column
{_CONVERSIONS}"""
_BRONZE = """\
FEED = Feed(
    name={name!r},
    table={table!r},
    columns=[{columns}],
    time_zone={time_zone!r},
    {options}
)

TABLE = bronze_table(
    FEED, "Rows of the feed {name} as delivered, each with its source."{days}
)"""
_SILVER_IMPORTS = f"""\
from lakehouse.iceberg.read.inputs import latest, versions_of
from lakehouse.iceberg.rules.rows import dated, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge, Overwrite, Versions, by_day
{_CONVERSIONS}"""
_SILVER = """\
TABLE = IcebergTable(
    name={name!r},
    comment={comment!r},
    rows_of=RAW,
    columns=[{columns}],
    {options}
)"""
_SAMPLE_ROWS = 5
_JSON_STRINGS = ("string", "date", "timestamp", "timestamp_ntz")
_Row = Mapping[str, str | None]
_TEST = """\
{docstring}

from pathlib import Path

from {package}.{bronze_table} import {bronze}
from {package}.{silver_table} import {silver}

{fixtures}
SAMPLE = Path(__file__).with_name("{sample}")


def test_sample_of_{name}_is_typed(try_table):
    delivered = try_table({bronze}, SAMPLE)
    tried = try_table({silver}, delivered.rows)

    assert not tried.refused
    assert not tried.failed
    assert len(tried.rows) == {rows}
"""


def bronze_text(plan: FeedPlan) -> str:
    """Return the text of the file that declares the feed."""
    days, body = "", "return delivered"
    if plan.days is not None:
        name, column = plan.days.name, plan.days.column
        doc = f"Day of {column.delivered} in the feed's time zone."
        days = f", extra=[Column({name!r}, 'date', {doc!r})], partitioning=[{name!r}],"
        raw = conversion(column) or _raw_sql(column)
        body = f'day = cast_sql({raw}, "date", FEED.time_zone)\n'
        body += f'return delivered.selectExpr("*", f"{{day}} AS {name}")'
    declaration = _BRONZE.format(
        name=plan.name,
        table=plan.bronze,
        columns=", ".join(map(_feed_column, plan.columns)),
        time_zone=plan.time_zone,
        options=_lines(_feed_options(plan)),
        days=days,
    )
    return AssetModule(
        plan.bronze,
        "delivered",
        f"Rows of the feed `{plan.name}` as they were delivered.",
        _BRONZE_IMPORTS,
        comments(CONFIRM.format(source=plan.source), bronze_notes(plan)) + declaration,
        "@feed_asset(FEED, TABLE)",
        body,
    ).text


def _lines(parts: Iterable[str]) -> str:
    """Return arguments with a comma after each, by which the formatter gives each a line."""
    return "".join(f"{part}," for part in parts)


def _feed_column(column: PlannedColumn) -> str:
    options = ["optional=True"] if column.is_optional else []
    if column.why_personal:
        options.append("personal=True")
    if column.in_bronze != column.delivered:
        options.append(f"header={column.delivered!r}")
    if column.bronze_type != "string":
        options.append(f"type={column.bronze_type!r}")
    name = repr(column.in_bronze)
    return f"FeedColumn({', '.join([name, *options])})" if options else name


def _feed_options(plan: FeedPlan) -> list[str]:
    formats = list(plan.samples.feed.formats)
    options = []
    if not set(formats) <= set(CSV_FORMATS):
        options.append(f"formats={formats}")
    if plan.samples.feed.delimiter != ",":
        options.append(f"delimiter={plan.samples.feed.delimiter!r}")
    if plan.subject is not None:
        options.append(f"subject={plan.subject.in_bronze!r}")
        if plan.version is not None:
            options.append(f"moment={plan.version.in_bronze!r}")
    elif plan.personal_columns:
        options.append('no_subject="The sample files have no such column."')
    return options


def silver_text(plan: FeedPlan, package: str) -> str:
    """Return the text of the file that declares the typed table."""
    has_all_lines = plan.days is not None and not plan.key
    read = "latest" if has_all_lines else "versions_of"
    by = f", by={plan.days.name!r}" if plan.days else ""
    options = _write_options(plan)
    if rules := _rules(plan):
        options.append(f"rules=[{', '.join(rules)}]")
    if plan.subject is not None and plan.subject.is_renamed:
        options.append(f"subject={plan.subject.name!r}")
    description = _description(plan)
    declaration = _SILVER.format(
        name=plan.silver,
        comment=description,
        columns=_lines(_silver_columns(plan)),
        options=_lines(options),
    )
    notes = comments(CONFIRM.format(source=plan.source), silver_notes(plan))
    notes += comments("Text, until its form is declared:", unclear_notes(plan))
    return AssetModule(
        plan.silver,
        "delivered",
        description,
        f"{_SILVER_IMPORTS}\nfrom {package}.{plan.bronze} import TABLE as RAW",
        notes + declaration,
        f'@iceberg_asset(TABLE, inputs={{"delivered": {read}(RAW{by})}})',
        _silver_body(plan),
    ).text


def _description(plan: FeedPlan) -> str:
    if plan.key:
        newest = f"the newest by {plan.version.name}" if plan.version else "as last delivered"
        return f"One row for each {' and '.join(plan.key)}, {newest}."
    return f"One row for each delivered line of the feed `{plan.name}`, typed."


def _has_versions(plan: FeedPlan) -> bool:
    """Whether the table declares the newest row of a key; a merge takes the last one by default."""
    return bool(plan.key) and (plan.days is not None or plan.version is not None)


def _silver_columns(plan: FeedPlan) -> list[str]:
    columns = []
    for column in plan.columns:
        parts = [repr(column.name), repr(column.type)]
        if column.is_renamed:
            parts += ["personal=True"] if column.why_personal else []
            parts.append(f"renamed_from={column.in_bronze!r}")
        columns.append(f"Column({', '.join(parts)})")
        if plan.days is not None and column is plan.days.column and column.type != "date":
            columns.append(f"Column({plan.days.name!r}, 'date')")
    if _has_versions(plan):
        columns.append(f"Column({_MODIFIED!r}, 'timestamp')")
    return columns


def _write_options(plan: FeedPlan) -> list[str]:
    """Return the options for writing."""
    if plan.days is not None:
        write = f'by_day({plan.days.silver_name!r}, since="{plan.days.since}")'
        if not plan.key:
            return [f"write={write}", "source_columns=True"]
    elif plan.key:
        write = f"Merge(on={list(plan.key)})"
        if not _has_versions(plan):
            return [f"write={write}"]
    else:
        write = "Overwrite()"
    newest = [*_NEWEST] if plan.key else [*_NEWEST[:1]]
    if plan.key and plan.version:
        newest.insert(0, plan.version.name)
    of = list(plan.key or SOURCE_COLUMNS)
    return [f"write={write}", f"versions=Versions(of={of}, newest={newest})"]


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


def _silver_body(plan: FeedPlan) -> str:
    changed = [
        f"{column.name!r}: expr({conversion(column) or _raw_sql(column)})"
        for column in plan.columns
        if conversion(column) or column.is_renamed
    ]
    body, result = "", "delivered"
    if changed:
        body = "from pyspark.sql.functions import expr\n\n"
        result = f"delivered.withColumns({{{', '.join(changed)}}})"
    if dropped := ", ".join(map(repr, _dropped(plan))):
        if changed:
            body += f"typed = {result}\n"
            result = "typed"
        result += f".drop({dropped})"
    return f"{body}return {result}"


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


def feed_files(plan: FeedPlan, folder: AssetsFolder) -> dict[Path, str]:
    """Return the text of all files of a new feed by their paths; nothing is written."""
    rows = _sample_rows(plan)
    is_csv = plan.samples.is_csv
    sample = folder.tests / f"{plan.name}_sample.{'csv' if is_csv else 'jsonl'}"
    texts = {
        folder.table_path(plan.bronze): bronze_text(plan),
        folder.table_path(plan.silver): silver_text(plan, folder.package),
        folder.tests / f"test_{plan.name}.py": _test_text(plan, folder, sample.name, len(rows)),
        sample: _csv(rows, plan) if is_csv else _json_lines(rows, plan),
    }
    return folder.completed(texts)


def _test_text(plan: FeedPlan, folder: AssetsFolder, sample: str, rows: int) -> str:
    return _TEST.format(
        docstring=docstring(f"The sample of the feed `{plan.name}`, delivered and typed."),
        package=folder.package,
        bronze_table=plan.bronze,
        silver_table=plan.silver,
        fixtures="" if folder.has_fixtures else f'pytest_plugins = ["{FIXTURES}"]\n',
        sample=sample,
        name=plan.name,
        bronze=plan.bronze.split(".")[1],
        silver=plan.silver.split(".")[1],
        rows=rows,
    )


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
    is_text = column.bronze_type in _JSON_STRINGS
    return json.dumps(text, ensure_ascii=False) if is_text else text
