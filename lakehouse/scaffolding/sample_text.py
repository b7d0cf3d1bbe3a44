"""A small sample of a feed's files, without data of people, and a test that types it."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.scaffolding.assets_package import FIXTURES, AssetsFolder
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.feed_text import bronze_text, silver_text
from lakehouse.scaffolding.python_text import docstring, formatted, import_lines
from lakehouse.scaffolding.samples import FILE_NUMBER

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
