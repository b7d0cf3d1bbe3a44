"""The guesses of a feed's declaration as sentences, for its comments and the command line."""

from collections.abc import Iterable

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
    delimiter = plan.samples.feed.delimiter
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
    for column in plan.columns:
        if column.reading.note and not (plan.days and plan.days.column is column):
            notes.append(_note(column))
        if column.has_blanks:
            words = ["blank text"] * column.profile.has_blanks + [*column.profile.nothing]
            notes.append(f"{column.delivered} has {_listed(words)}, read as NULL.")
    if plan.days is not None:
        notes.append(
            f"Rows are partitioned by the day of {plan.days.column.delivered}:"
            f" {plan.days.with_rows} days from {plan.days.first} to {plan.days.last} have rows."
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
    newest = f"the newest by {plan.version.name}" if plan.version else "the last"
    if guess.is_repeated:
        return (
            f"{_listed(plan.key)} occurs once in a file and again in others, {newest} of which"
            f" counts: {guess.replaced_rows:,} of {plan.rows:,} rows are replaced by one with other"
            " values."
        )
    if plan.key:
        be = "is" if len(plan.key) == 1 else "together are"
        repeated = f" Of repeated ones, {newest} counts." if plan.version else ""
        return f"{_listed(plan.key)} {be} the key: no two rows have the same.{repeated}"
    note = "No column is a key: each delivered line is a row."
    if guess.nearest:
        names = {column.delivered: column.name for column in plan.columns}
        nearest = [names[name] for name in guess.nearest]
        note += (
            f" Nearest to a key: {_listed(nearest)}; {guess.nearest_repeated_rows:,} of"
            f" {plan.rows:,} rows have nothing there, or what another row has. If only the last"
            f" one counts, use versions_of(RAW) and write=Merge(on={nearest!r})."
        )
    return note


def _note(column: PlannedColumn) -> str:
    return f"{column.delivered} has {column.reading.note}."


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
