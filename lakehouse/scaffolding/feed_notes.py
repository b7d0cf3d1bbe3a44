"""The guesses of a feed's declaration as sentences, for its comments and the command line."""

from collections.abc import Iterable, Sequence

from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.personal_columns import has_full_names
from lakehouse.tables.feed import DELIMITERS


def bronze_notes(plan: FeedPlan) -> list[str]:
    """Return the guesses about the feed: data of people, delimiter and optional columns."""
    notes = [
        f"{column.delivered} is personal: {column.why_personal}."
        for column in plan.personal_columns
    ]
    if plan.subject is not None:
        notes.append(f"{plan.subject.delivered} stands for a person, by whom rows are erased.")
    elif plan.personal_columns:
        notes.append("No column stands for a person; erased are single values.")
    notes += [
        f"{column.delivered} has values like names of people; declare personal=True if they are."
        for column in plan.columns
        if not column.why_personal and has_full_names(column.profile)
    ]
    delimiter = plan.samples.delimiter
    if delimiter != ",":
        notes.append(f"Fields are separated by {DELIMITERS[delimiter]}.")
    optional = [column.delivered for column in plan.columns if column.is_optional]
    if optional:
        notes.append(f"Not each file has {_listed(optional)}.")
    if plan.days is not None and plan.days.column.reading.note:
        notes.append(_note(plan.days.column))
    return notes


def silver_notes(plan: FeedPlan) -> list[str]:
    """Return the guesses about the typed table: its key, notations and partitions."""
    notes = [_key_note(plan)]
    if plan.repeated_rows:
        notes.append(
            f"{plan.repeated_rows:,} of {plan.rows:,} rows equal a previous row in all columns;"
            " each counts."
        )
    for column in plan.columns:
        if column.reading.note and not (plan.days and plan.days.column is column):
            notes.append(_note(column))
        if column.has_blanks:
            notes.append(f"{column.delivered} has {_nothing(column)}, read as nothing.")
    if plan.days is not None:
        days = plan.days
        noun = "day" if days.with_rows == 1 else "days"
        without_rows = (days.last - days.first).days + 1 - days.with_rows
        gaps = f", {without_rows} between have none" if without_rows else ""
        notes.append(
            f"Rows are partitioned by the day of {days.column.delivered}: {days.with_rows} {noun}"
            f" from {days.first} to {days.last} have rows{gaps}."
        )
    return notes


def unclear_notes(plan: FeedPlan) -> list[str]:
    """Return the columns that stay text though their values are no plain text."""
    by_reason: dict[str, list[str]] = {}
    for column in plan.columns:
        by_reason.setdefault(column.reading.unclear, []).append(column.name)
    by_reason.pop("", None)
    return [f"{_listed(names)}: {reason}." for reason, names in by_reason.items()]


def _key_note(plan: FeedPlan) -> str:
    guess = plan.key_guess
    if guess.repeated:
        return _repeated_key_note(plan)
    if plan.key:
        be = "is" if len(plan.key) == 1 else "together are"
        newest = f" Of repeated ones, {_newest(plan)} counts." if plan.version else ""
        return f"{_listed(plan.key)} {be} the key: no two rows have the same.{newest}"
    if not guess.nearest:
        nearest = "None that is named as a key, such as id or order_no, can be one."
    else:
        nearest = (
            f"Nearest to a key: {_listed(_silver(plan, guess.nearest))};"
            f" {guess.nearest_repeated_rows:,} of {plan.rows:,} rows have nothing there, or what"
            " another row has."
        )
    return f"No column is a key: each delivered line is a row. {nearest}"


def _repeated_key_note(plan: FeedPlan) -> str:
    """Describe a key that occurs once in each file, and again in other files."""
    guess = plan.key_guess
    columns = _silver(plan, guess.repeated)
    occur = f"{_listed(columns)} occurs once in a file and again in others"
    rows = f"{guess.replaced_rows:,} of {plan.rows:,} rows"
    if guess.added:
        added = _silver(plan, [guess.added])
        return (
            f"{occur}: as the key, {rows} would be replaced by one with other values. Together"
            f" with {_listed(added)} it is the key, and no row is lost."
        )
    if not plan.key:
        return (
            f"No column is a key: each delivered line is a row. {occur}: as the key, {rows} would"
            " be replaced by one with other values. If only the last one counts, use"
            f" versions_of(RAW) and write=Merge(on={columns!r})."
        )
    replaced = f": {rows} are replaced by one with other values" if guess.replaced_rows else ""
    return f"{occur}, {_newest(plan)} of which counts{replaced}."


def _newest(plan: FeedPlan) -> str:
    return f"the newest by {plan.version.name}" if plan.version else "the last"


def _silver(plan: FeedPlan, delivered: Sequence[str]) -> list[str]:
    names = {column.delivered: column.name for column in plan.columns}
    return [names[name] for name in delivered]


def _note(column: PlannedColumn) -> str:
    return f"{column.delivered} has {column.reading.note}."


def _nothing(column: PlannedColumn) -> str:
    """Describe the words for missing values, and in how many rows."""
    counts = dict(column.profile.nothing)
    if column.profile.blank_rows:
        what = "empty text" if column.profile.file_type else "spaces alone"
        counts[what] = column.profile.blank_rows
    return _listed(
        f"{what} in {rows:,} {'row' if rows == 1 else 'rows'}" for what, rows in counts.items()
    )


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
