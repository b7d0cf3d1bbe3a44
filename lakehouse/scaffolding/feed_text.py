"""The files of a new feed: its tables, and a test with a sample without personal values."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.scaffolding.assets_package import FIXTURES, AssetsFolder
from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes, unclear_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.python_text import (
    CONFIRM,
    AssetModule,
    comments,
    docstring,
    formatted,
    import_lines,
    quoted_list,
    quoted_text,
)
from lakehouse.scaffolding.samples import FILE_NUMBER
from lakehouse.tables.feed import CSV_FORMATS
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS

_FEED = "lakehouse.tables.feed"
_TABLE = "lakehouse.tables.table"
_FORMS = "lakehouse.tables.written_forms"
_ROW_RULES = "lakehouse.iceberg.rules.rows"
_KEY_RULES = "lakehouse.iceberg.rules.unique_and_references"
_MODIFIED = "_source_modified_at"
_NEWEST = ("_ingested_at", _MODIFIED, "_source_file", "_source_row", "_source_sha256")
"""The order of deliveries, as of a table that is merged by its key."""
_BRONZE = """\
FEED = Feed(
    name="{name}",
    table="{bronze}",
    {columns},
    time_zone="{time_zone}",{options}
)

TABLE = bronze_table(FEED, "Rows of the feed {name} as delivered, each with its source."{days})
"""
_SILVER = """\
TABLE = IcebergTable(
    name="{silver}",
    comment={comment},
    rows_of=RAW,
    columns=[
        {columns}
    ],
    {options}
)
"""
_MIN_ROWS, _MAX_ROWS = 5, 12
_ROWS_PER_FILE = 200
"""Rows of a file from which the sample is chosen."""
_JSON_STRINGS = ("string", "date", "timestamp", "timestamp_ntz")
Row = Mapping[str, str | None]
_TEST = """\
{docstring}

from pathlib import Path

{imports}
{fixtures}
SAMPLE = Path(__file__).with_name("{sample}")


def test_sample_of_{name}_is_typed(try_table):
    delivered = try_table({bronze}, SAMPLE)
    tried = try_table({silver}, delivered.rows)

    assert not tried.refused
    assert not tried.failed
    assert len(tried.rows) == {rows}
"""


def bronze_text(plan: FeedPlan, package: str, width: int) -> str:
    """Return the text of the file that declares the feed."""
    columns = [_feed_column(column) for column in plan.columns]
    imports = [
        ("lakehouse.ingestion.feed_asset", "feed_asset"),
        (_FEED, "Feed"),
        (_FEED, "bronze_table"),
    ]
    if any(column.startswith("FeedColumn") for column in columns):
        imports.append((_FEED, "FeedColumn"))
    days, body = "", "    return delivered"
    if plan.days is not None:
        imports += [("lakehouse.tables.casts", "cast_sql"), (_TABLE, "Column")]
        imports += _conversion_imports(plan.days.column)
        name, column = plan.days.name, plan.days.column
        doc = quoted_text(f"Day of {column.delivered} in the feed's time zone.")
        days = f', extra=[Column("{name}", "date", {doc})], partitioning=["{name}"]'
        raw = conversion(column) or _raw_sql(column)
        body = f'    day = cast_sql({raw}, "date", FEED.time_zone)\n'
        body += f'    return delivered.selectExpr("*", f"{{day}} AS {name}")'
    declaration = _BRONZE.format(
        name=plan.name,
        bronze=plan.bronze,
        columns=f"columns=[{', '.join(columns)}]",
        time_zone=plan.time_zone,
        options="".join(f"\n    {option}," for option in _feed_options(plan)),
        days=days,
    )
    notes = comments(CONFIRM.format(source=plan.source), bronze_notes(plan), width)
    return AssetModule(
        plan.bronze,
        "delivered",
        f"Rows of the feed `{plan.name}` as they were delivered.",
        import_lines(imports, package, width),
        notes + declaration,
        "@feed_asset(FEED, TABLE)",
        body,
    ).text(width)


def _feed_column(column: PlannedColumn) -> str:
    options = ["optional=True"] if column.is_optional else []
    if column.why_personal:
        options.append("personal=True")
    if column.in_bronze != column.delivered:
        options.append(f"header={quoted_text(column.delivered)}")
    if column.bronze_type != "string":
        options.append(f"type={quoted_text(column.bronze_type)}")
    name = quoted_text(column.in_bronze)
    return f"FeedColumn({', '.join([name, *options])})" if options else name


def _feed_options(plan: FeedPlan) -> list[str]:
    formats = {file.file_format for file in plan.samples.files}
    options = []
    if not formats <= set(CSV_FORMATS):
        options.append(f"formats={quoted_list(sorted(formats))}")
    if plan.samples.delimiter != ",":
        options.append(f"delimiter={quoted_text(plan.samples.delimiter)}")
    if plan.subject is not None:
        options.append(f"subject={quoted_text(plan.subject.in_bronze)}")
        if plan.version is not None:
            options.append(f"moment={quoted_text(plan.version.in_bronze)}")
    elif plan.personal_columns:
        options.append('no_subject="The sample files have no such column."')
    return options


def silver_text(plan: FeedPlan, package: str, width: int) -> str:
    """Return the text of the file that declares the typed table."""
    read = "latest" if _has_all_lines(plan) else "versions_of"
    by = f', by="{plan.days.name}"' if plan.days else ""
    options, names = _silver_options(plan)
    imports = [
        (f"{package}.{plan.bronze}", "TABLE as RAW"),
        ("lakehouse.iceberg.read.inputs", read),
        ("lakehouse.orchestration.iceberg_asset", "iceberg_asset"),
        *((_TABLE, name) for name in ("Column", "IcebergTable", *names)),
    ]
    rules = _rules(plan)
    if rules:
        options.append(f"rules=[{', '.join(rules)}]")
        has_rule = {name: any(name in rule for rule in rules) for name in ("not_null", "dated")}
        imports += [(_ROW_RULES, name) for name, is_used in has_rule.items() if is_used]
        imports += [(_KEY_RULES, "unique")] if plan.key else []
    if plan.subject is not None and plan.subject.is_renamed:
        options.append(f"subject={quoted_text(plan.subject.name)}")
    for column in plan.columns:
        imports += _conversion_imports(column)
    description = _description(plan)
    declaration = _SILVER.format(
        silver=plan.silver,
        comment=quoted_text(description),
        columns="\n        ".join(f"{column}," for column in _silver_columns(plan)),
        options="\n    ".join(f"{option}," for option in options),
    )
    unclear = "Text, until its form is declared:"
    notes = comments(CONFIRM.format(source=plan.source), silver_notes(plan), width)
    notes += comments(unclear, unclear_notes(plan), width)
    return AssetModule(
        plan.silver,
        "delivered",
        description,
        import_lines(imports, package, width),
        notes + declaration,
        f'@iceberg_asset(TABLE, inputs={{"delivered": {read}(RAW{by})}})',
        _silver_body(plan),
    ).text(width)


def _description(plan: FeedPlan) -> str:
    if plan.key:
        newest = f"the newest by {plan.version.name}" if plan.version else "as last delivered"
        return f"One row for each {' and '.join(plan.key)}, {newest}."
    return f"One row for each delivered line of the feed `{plan.name}`, typed."


def _has_all_lines(plan: FeedPlan) -> bool:
    """Whether days are computed from all of their lines."""
    return plan.days is not None and not plan.key


def _has_versions(plan: FeedPlan) -> bool:
    """Whether the table declares the newest row of a key; a merge takes the last one by default."""
    return bool(plan.key) and (plan.days is not None or plan.version is not None)


def _silver_columns(plan: FeedPlan) -> list[str]:
    columns = []
    for column in plan.columns:
        parts = [quoted_text(column.name), quoted_text(column.type)]
        if column.is_renamed:
            parts += ["personal=True"] if column.why_personal else []
            parts.append(f"renamed_from={quoted_text(column.in_bronze)}")
        columns.append(f"Column({', '.join(parts)})")
        if plan.days is not None and column is plan.days.column and column.type != "date":
            columns.append(f'Column("{plan.days.name}", "date")')
    if _has_versions(plan):
        columns.append(f'Column("{_MODIFIED}", "timestamp")')
    return columns


def _silver_options(plan: FeedPlan) -> tuple[list[str], list[str]]:
    """Return the options for writing, and the names that they need."""
    if plan.days is not None:
        write = f'by_day("{plan.days.silver_name}", since="{plan.days.since}")'
        if not plan.key:
            return [f"write={write}", "source_columns=True"], ["by_day"]
    elif plan.key:
        write = f"Merge(on={quoted_list(plan.key)})"
        if not _has_versions(plan):
            return [f"write={write}"], ["Merge"]
    else:
        write = "Overwrite()"
    newest = _NEWEST if plan.key else _NEWEST[:1]
    if plan.key and plan.version:
        newest = (plan.version.name, *newest)
    of = quoted_list(plan.key or SOURCE_COLUMNS)
    versions = f"versions=Versions(of={of}, newest={quoted_list(newest)})"
    return [f"write={write}", versions], [write.partition("(")[0], "Versions"]


def _rules(plan: FeedPlan) -> list[str]:
    """Return the rules: the key, its day and numbers without gaps are required."""
    filled = [*plan.key]
    if plan.days is not None and plan.key:
        filled.append(plan.days.silver_name)
    numbers = ("int", "bigint", "double", "decimal")
    filled += [c.name for c in plan.columns if c.is_filled and c.type.startswith(numbers)]
    rules = [f"*map(not_null, {quoted_list(dict.fromkeys(filled))})"] if filled else []
    if plan.key:
        rules.append(f"unique({', '.join(map(quoted_text, plan.key))})")
    if plan.days is not None and plan.key:
        rules.append(
            f'dated("{plan.days.silver_name}", since="{plan.days.since}",'
            ' until="_ingested_at", time_zone=RAW.wall_time_zone)'
        )
    return rules


def _silver_body(plan: FeedPlan) -> str:
    changed = [
        f"{quoted_text(column.name)}: expr({conversion(column) or _raw_sql(column)})"
        for column in plan.columns
        if conversion(column) or column.is_renamed
    ]
    dropped = ", ".join(map(quoted_text, _dropped(plan)))
    if not changed:
        return f"    return delivered.drop({dropped})" if dropped else "    return delivered"
    head = "typed =" if dropped else "return"
    body = "    from pyspark.sql.functions import expr\n\n"
    body += f"    {head} delivered.withColumns({{{', '.join(changed)}}})"
    return f"{body}\n    return typed.drop({dropped})" if dropped else body


def _dropped(plan: FeedPlan) -> list[str]:
    """Return the columns that the table does not have; reading versions drops them itself."""
    if plan.days is None or plan.key:
        return []
    names = [column.in_bronze for column in plan.columns if column.is_renamed]
    return names if plan.days.name == plan.days.silver_name else [*names, plan.days.name]


def _raw_sql(column: PlannedColumn) -> str:
    """Return the SQL of what is delivered, as code."""
    name = column.in_bronze
    return quoted_text(identifier(name) if column.is_renamed else name)


def conversion(column: PlannedColumn) -> str:
    """Return the call that converts a column; empty if casts read what is delivered."""
    sql = _raw_sql(column)
    if column.has_blanks:
        words = map(quoted_text, column.profile.nothing)
        sql = f"blank_as_null({', '.join([sql, *words])})"
    function, arguments = column.reading.function, column.reading.arguments
    if function:
        return f"{function}({', '.join([sql, *arguments])})"
    return sql if column.has_blanks else ""


def _conversion_imports(column: PlannedColumn) -> list[tuple[str, str]]:
    names = ["blank_as_null"] if column.has_blanks else []
    names += [column.reading.function] if column.reading.function else []
    return [(_FORMS, name) for name in names]


def feed_files(plan: FeedPlan, folder: AssetsFolder) -> dict[Path, str]:
    """Return the text of all files of a new feed by their paths; nothing is written."""
    rows = _sample_rows(plan)
    is_typed = bool(plan.samples.types)
    sample = folder.tests / f"{plan.name}_sample.{'jsonl' if is_typed else 'csv'}"
    texts = {
        folder.table_path(plan.bronze): bronze_text(plan, folder.package, folder.line_length),
        folder.table_path(plan.silver): silver_text(plan, folder.package, folder.line_length),
        folder.tests / f"test_{plan.name}.py": _test_text(plan, folder, sample.name, len(rows)),
        sample: _json_lines(rows, plan) if is_typed else _csv(rows, plan),
    }
    return folder.with_packages(texts)


def _test_text(plan: FeedPlan, folder: AssetsFolder, sample: str, rows: int) -> str:
    bronze, silver = (table.split(".")[1] for table in (plan.bronze, plan.silver))
    imports = [
        (f"{folder.package}.{plan.bronze}", bronze),
        (f"{folder.package}.{plan.silver}", silver),
    ]
    width = folder.line_length
    text = _TEST.format(
        docstring=docstring(
            f"The sample of the feed `{plan.name}`, delivered and typed.", width
        ),
        imports=import_lines(imports, folder.package, width),
        fixtures="" if folder.has_fixtures else f'\npytest_plugins = ["{FIXTURES}"]\n',
        sample=sample,
        name=plan.name,
        bronze=bronze,
        silver=silver,
        rows=rows,
    )
    return formatted(text, width)


def _sample_rows(plan: FeedPlan) -> list[Row]:
    """Choose rows with a value of another form than the rows before, and replace values of
    people.

    Other text stays: a remark can contain a name.
    """
    chosen: list[Row] = []
    similar: list[Row] = []
    forms: set[tuple[str, str | None]] = set()
    keys: set[tuple[str | None, ...]] = set()
    for row in _first_rows(plan):
        key = tuple(row[column.delivered] for column in plan.columns if column.name in plan.key)
        if plan.key and key in keys:
            continue
        keys.add(key)
        new = {(name, _form(text)) for name, text in row.items()} - forms
        forms |= new
        if new and len(chosen) < _MAX_ROWS:
            chosen.append(row)
        elif len(similar) < _MIN_ROWS:
            similar.append(row)
    people: dict[tuple[str, str], int] = {}
    return [
        {column.delivered: _masked(column, row, plan, people) for column in plan.columns}
        for row in chosen + similar[: max(0, _MIN_ROWS - len(chosen))]
    ]


def _first_rows(plan: FeedPlan) -> Iterable[Row]:
    """Yield the first rows of the first and the last file, then of the remaining files."""
    texts = plan.samples.texts
    numbers = texts[FILE_NUMBER].to_numpy()
    for file in [0, *range(len(plan.samples.files) - 1, 0, -1)]:
        start, end = numbers.searchsorted([file, file + 1])
        rows = texts.slice(int(start), min(_ROWS_PER_FILE, int(end - start)))
        yield from rows.drop_columns([FILE_NUMBER]).to_pylist()


def _form(text: str | None) -> str | None:
    """Return what is common to values that are written alike."""
    return text and re.sub("[0-9]+", "9", re.sub(r"[^\W\d_]+", "a", text.strip()))[:20]


def _masked(
    column: PlannedColumn, row: Row, plan: FeedPlan, people: dict[tuple[str, str], int]
) -> str | None:
    """Return a value; of people an invented one, the same for the same person."""
    text = row[column.delivered]
    is_subject = column is plan.subject
    if not text or not (column.why_personal or is_subject):
        return text
    known = sum(name == column.delivered for name, _ in people)
    number = people.setdefault((column.delivered, text), known + 1)
    if "@" in text:
        return f"person{number}@example.com"
    if column.reading.days:
        return f"1970-01-{number:02}"
    is_number = column.bronze_type not in _JSON_STRINGS
    return str(number) if is_subject or is_number else f"{column.name} {number}"


def _csv(rows: Iterable[Row], plan: FeedPlan) -> str:
    target = io.StringIO()
    writer = csv.writer(target, delimiter=plan.samples.delimiter, lineterminator="\n")
    writer.writerow(column.delivered for column in plan.columns)
    writer.writerows(row.values() for row in rows)
    return target.getvalue()


def _json_lines(rows: Iterable[Row], plan: FeedPlan) -> str:
    lines = []
    for row in rows:
        values = (
            f"{json.dumps(column.delivered)}: {_json_value(row[column.delivered], column)}"
            for column in plan.columns
        )
        lines.append(f"{{{', '.join(values)}}}\n")
    return "".join(lines)


def _json_value(text: str | None, column: PlannedColumn) -> str:
    if text is None or column.profile.file_type == "binary":
        return "null"
    is_text = column.profile.file_type in _JSON_STRINGS
    return json.dumps(text, ensure_ascii=False) if is_text else text
