"""A few rows of the files to test with: of each way in which values are written one, and nobody
to be known in them.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from lakehouse.scaffolding.column_profile import says_nothing
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.inspect_files import Inspection, Row
from lakehouse.scaffolding.values import DateParts, day_of, value_of

_FEWEST_ROWS, _MOST_ROWS = 5, 12
_MOST_SUMS = 3
_JSON_STRINGS = ("string", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Sample:
    """The text of a sample file, and what silver has of its rows."""

    text: str
    rows: int
    sums: dict[str, Decimal]
    """By column of silver."""
    days: tuple[date, ...]
    """Those that rows are parted by; empty where there are none, or moments have offsets."""


def sample_of(found: Inspection, plan: FeedPlan) -> Sample:
    """Choose rows of files that were looked at; values of people are replaced by invented ones.

    Other text stays as it is: who writes names into remarks has them in the sample.
    """
    masks = _Masks(plan)
    rows = [masks.masked(row) for row in _chosen(_first_rows(found), plan)]
    text = _json_lines(rows, plan) if plan.is_typed else _csv(rows, plan)
    return Sample(text, len(rows), _sums(rows, plan), _days(rows, plan))


def _csv(rows: Iterable[Row], plan: FeedPlan) -> str:
    target = io.StringIO()
    writer = csv.writer(target, delimiter=plan.delimiter, lineterminator="\n")
    names = [column.delivered for column in plan.columns]
    writer.writerow(names)
    writer.writerows([row.get(name) for name in names] for row in rows)
    return target.getvalue()


def _json_lines(rows: Iterable[Row], plan: FeedPlan) -> str:
    lines = []
    for row in rows:
        values = (
            f"{json.dumps(column.delivered)}: {_json_value(row.get(column.delivered), column)}"
            for column in plan.columns
        )
        lines.append(f"{{{', '.join(values)}}}\n")
    return "".join(lines)


def _json_value(text: str | None, column: PlannedColumn) -> str:
    if text is None or column.file_type == "binary":
        return "null"
    is_text = column.file_type in _JSON_STRINGS
    return json.dumps(text, ensure_ascii=False) if is_text else text


def _first_rows(found: Inspection) -> Iterator[Row]:
    """Give the files' first rows: of the first and the last file, then of those between."""
    files = found.files
    for file in (*files[:1], *files[:0:-1]):
        yield from file.first_rows


def _chosen(rows: Iterable[Row], plan: FeedPlan) -> list[Row]:
    """Return the rows that bring a form of a value which none before has, and a few more."""
    chosen: list[Row] = []
    others: list[Row] = []
    seen: set[tuple[str, object]] = set()
    keys: set[tuple[str | None, ...]] = set()
    delivered = {column.name: column.delivered for column in plan.columns}
    for row in rows:
        key = tuple(row.get(delivered[name]) for name in plan.key)
        if plan.key and key in keys:
            continue
        keys.add(key)
        forms = {(name, _form(text)) for name, text in row.items()}
        if forms - seen and len(chosen) < _MOST_ROWS:
            chosen.append(row)
            seen |= forms
        elif len(others) < _FEWEST_ROWS:
            others.append(row)
    return chosen + others[: max(0, _FEWEST_ROWS - len(chosen))]


def _form(text: str | None) -> object:
    if text is None or not text.strip():
        return "empty"
    value = value_of(text)
    return (value.date.order, value.date.sign) if value.date else value.form


@dataclass
class _Masks:
    """Invented values, the same for the same person."""

    plan: FeedPlan
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def masked(self, row: Row) -> Row:
        return {column.delivered: self._value(column, row) for column in self.plan.columns}

    def _value(self, column: PlannedColumn, row: Row) -> str | None:
        text = row.get(column.delivered)
        is_subject = column is self.plan.subject
        if not text or not (column.why_personal or is_subject):
            return text
        known = sum(name == column.delivered for name, _ in self.numbers)
        number = self.numbers.setdefault((column.delivered, text), known + 1)
        if "@" in text:
            return f"person{number}@example.com"
        if column.reading.dates is not None:
            return f"1970-01-{number:02}"
        is_number = column.bronze_type not in _JSON_STRINGS
        return str(number) if is_subject or is_number else f"{column.name} {number}"


def _sums(rows: Iterable[Row], plan: FeedPlan) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for column in plan.columns:
        numbers = column.reading.numbers
        is_counted = column is not plan.subject and column.name not in plan.key
        if numbers is None or numbers.unclear or not is_counted or column.type == "double":
            continue
        if len(sums) < _MOST_SUMS and not column.why_personal:
            texts = (row[column.delivered] for row in rows)
            values = (numbers.value(text) for text in texts if text and not says_nothing(text))
            sums[column.name] = sum(values, Decimal(0))
    return sums


def _days(rows: Iterable[Row], plan: FeedPlan) -> tuple[date, ...]:
    if plan.days is None:
        return ()
    column = plan.days.column
    days = set()
    for row in rows:
        parts = value_of(row[column.delivered] or "").date
        day = _day(parts, column) if parts and not parts.has_offset else None
        if day is None:
            return ()
        days.add(day)
    return tuple(sorted(days))


def _day(parts: DateParts, column: PlannedColumn) -> date | None:
    dates = column.reading.dates
    assert dates is not None
    is_day_first = any(form.startswith("D") and form[1] == parts.sign for form in dates.forms)
    if parts.order == "day_or_month" and is_day_first:
        return day_of(parts.year, parts.second, parts.first)
    return day_of(parts.year, parts.first, parts.second)
