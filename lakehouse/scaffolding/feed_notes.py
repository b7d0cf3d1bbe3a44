"""What was guessed of a feed, in words, for the comments of its declaration."""

from collections.abc import Iterable, Sequence

from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.repeated_keys import RepeatedKey
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
    if plan.like_names:
        be = "has values" if len(plan.like_names) == 1 else "have values"
        notes.append(
            f"{_listed(plan.like_names)} {be} like names of people; say personal=True where they"
            " are some."
        )
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
    chosen = plan.chosen_key
    if chosen.repeated is not None and chosen.repeated.replaced_rows:
        return _without_loss_note(plan, chosen.repeated)
    if not plan.key:
        return f"No column is a key: each delivered line is a row. {_near_key_note(plan)}"
    key = _listed(plan.key)
    which = f"the newest by {plan.moment.name}" if plan.moment else "the last"
    if chosen.is_repeated:
        return f"{key} {_come_again(plan.key)}, {which} of which counts."
    again = f" Should one come again, {which} counts." if plan.moment else ""
    be = "is" if len(plan.key) == 1 else "together are"
    return f"{key} {be} the key: no two rows have the same.{again}{_one_day_note(plan)}"


def _without_loss_note(plan: FeedPlan, repeated: RepeatedKey) -> str:
    """Say what was decided of a key that comes again in other files with other values."""
    names = {column.delivered: column.name for column in plan.columns}
    columns = [names[part] for part in repeated.columns]
    come = f"{_listed(columns)} {_come_again(columns)}"
    rows = f"{repeated.replaced_rows:,} of {repeated.rows:,} rows"
    if plan.chosen_key.is_repeated and plan.moment:
        return (
            f"{come}, the newest by {plan.moment.name} of which counts: {rows} give way to one"
            " with other values."
        )
    replaced = f"by it alone {rows} would be replaced by one with other values"
    if plan.key:
        beside = names[plan.chosen_key.beside]
        return f"{come}: {replaced}. Together with {beside} it is the key, and no row is lost."
    return (
        f"No column is a key: each delivered line is a row. {come}: {replaced}. Where only the"
        f" last shall count, that is versions_of(RAW), and write=Merge(on={columns!r})."
    )


def _come_again(columns: Sequence[str]) -> str:
    come = "comes" if len(columns) == 1 else "together come"
    return f"{come} once in a file and again in others"


def _one_day_note(plan: FeedPlan) -> str:
    """Say of a single file of one day that others may have the same keys."""
    if plan.files > 1 or plan.days is None or plan.days.with_rows > 1:
        return ""
    return (
        " All rows are of one day: where another day has the same keys again, begin the feed from"
        " files of both, or rows of one would replace those of the other."
    )


def _near_key_note(plan: FeedPlan) -> str:
    """Say which columns come nearest to a key, and what keeps them from being one."""
    near = plan.chosen_key.near
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
        counts["empty text" if column.file_type else "spaces alone"] = column.blank_rows
    return _listed(f"{what} in {rows:,} {_rows(rows)}" for what, rows in counts.items())


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _is_day(plan: FeedPlan, column: PlannedColumn) -> bool:
    return plan.days is not None and plan.days.column is column


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
