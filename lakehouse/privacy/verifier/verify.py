"""The proof that people are gone: a search of every byte, beside a control that has to be found."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.privacy.verifier.control.run_control import run_control, run_hmac_control
from lakehouse.privacy.verifier.held_columns import HeldColumns
from lakehouse.privacy.verifier.report import Report
from lakehouse.privacy.verifier.roots import Root
from lakehouse.privacy.verifier.search import Progress, search, search_hmacs, tell_nobody
from lakehouse.tables.person import Person


def verify(
    roots: Sequence[Root],
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
    *,
    progress: Callable[[Progress], None] = tell_nobody,
    scratch: Path | None = None,
) -> Report:
    """Say where people still are, by their values: in decoded columns and in all bytes.

    :param columns: of all tables and feeds that have people in them.
    :param remaining_values: the personal values of people who remain, which explain a hit: read
        once, one at a time.
    :param scratch: the folder in which the control is planted, and removed.
    """
    report = search(roots, people, columns, remaining_values, progress)
    return replace(report, control=run_control(report.places, scratch, columns))


def verify_by_hmac(
    roots: Sequence[Root],
    key: bytes,
    hmacs: Sequence[str],
    columns: Sequence[HeldColumns],
    *,
    progress: Callable[[Progress], None] = tell_nobody,
    scratch: Path | None = None,
) -> Report:
    """Say where people are by the HMACs of their values, in the declared columns alone.

    :param hmacs: `person_hmac` of each, in hexadecimal digits.
    """
    report = search_hmacs(roots, key, hmacs, columns, progress)
    return replace(report, control=run_hmac_control(scratch, columns))
