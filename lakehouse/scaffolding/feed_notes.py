"""What was guessed of a feed, in words, for the comments of its declaration."""

from collections.abc import Iterable

from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.tables.feed import DELIMITERS


def bronze_notes(plan: FeedPlan) -> list[str]:
    """Say what the feed's own declaration guesses: whom it tells of, and what files may lack."""
    notes = [
        f"{column.delivered} is personal: {column.why_personal}."
        for column in plan.personal_columns
    ]
    if plan.subject is not None:
        notes.append(f"{plan.subject.delivered} stands for a person, by whom rows are erased.")
    elif plan.personal_columns:
        notes.append("No column stands for a person; erased are single values.")
    if plan.delimiter != ",":
        notes.append(f"Fields are separated by {DELIMITERS[plan.delimiter]}.")
    optional = [column.delivered for column in plan.columns if column.is_optional]
    if optional:
        notes.append(f"Not each file has {_listed(optional)}.")
    if plan.days is not None and plan.days.column.reading.note:
        notes.append(_note(plan.days.column))
    return notes


def silver_notes(plan: FeedPlan) -> list[str]:
    """Say what the typed table guesses: its key, how values are written, and which days there
    are.
    """
    notes = [_key_note(plan)]
    repeated, compared = plan.repeated_rows
    if repeated and not plan.key:
        notes.append(
            f"{repeated:,} of {compared:,} rows have in all columns what a row before has, and"
            " count once more each."
        )
    for column in plan.columns:
        if column.reading.note and not _is_day(plan, column):
            notes.append(_note(column))
        if column.has_blanks:
            notes.append(f"{column.delivered} has {_nothing(column)}, read as nothing.")
    if plan.days is not None:
        days = plan.days
        noun = "day" if days.with_rows == 1 else "days"
        gaps = f", {days.without_rows} between have none" if days.without_rows else ""
        notes.append(
            f"Rows are parted by the day of {days.column.delivered}: {days.with_rows} {noun}"
            f" from {days.since} to {days.last} have rows{gaps}."
        )
    return notes


def unclear_notes(plan: FeedPlan) -> list[str]:
    """Say which columns stay text since their values do not tell what they are."""
    by_reason: dict[str, list[str]] = {}
    for column in plan.unclear_columns:
        by_reason.setdefault(column.reading.unclear, []).append(column.name)
    return [f"{_listed(names)}: {reason}." for reason, names in by_reason.items()]


def _key_note(plan: FeedPlan) -> str:
    if not plan.key:
        return f"No column is a key: each delivered line is a row. {_near_key_note(plan)}"
    key = _listed(plan.key)
    which = f"the newest by {plan.moment.name}" if plan.moment else "the last"
    if plan.is_repeated:
        come = "comes" if len(plan.key) == 1 else "together come"
        return f"{key} {come} once in a file and again in others, {which} of which counts."
    again = f" Should one come again, {which} counts."
    be = "is" if len(plan.key) == 1 else "together are"
    return f"{key} {be} the key: no two rows have the same.{again if plan.moment else ''}"


def _near_key_note(plan: FeedPlan) -> str:
    """Say which columns come nearest to a key, and what keeps them from being one."""
    near = plan.near_key
    if near is None:
        return "None is named as keys are, such as id or order_no."
    names = {column.delivered: column.name for column in plan.columns}
    nearest = _listed(names[part] for part in near.columns)
    come = "comes" if len(near.columns) == 1 else "together come"
    if not near.repeated_rows:
        return f"{nearest} {come} nearest."
    rows = f"{near.repeated_rows:,} of {near.rows:,} rows"
    return f"{nearest} {come} nearest: {rows} have nothing there, or what another row has."


def _note(column: PlannedColumn) -> str:
    return f"{column.delivered} has {column.reading.note}."


def _nothing(column: PlannedColumn) -> str:
    """Say what stands where there is no value, and in how many rows."""
    counts = dict(column.nothing)
    if column.blank_rows:
        counts["spaces alone"] = column.blank_rows
    return _listed(f"{what} in {rows:,} {_rows(rows)}" for what, rows in counts.items())


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _is_day(plan: FeedPlan, column: PlannedColumn) -> bool:
    return plan.days is not None and plan.days.column is column


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
