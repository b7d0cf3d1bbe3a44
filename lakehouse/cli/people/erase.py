"""`lakehouse erase`: erases data subjects on request."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import by_option, parse_people, why_option
from lakehouse.cli.output.cell_values import utc_seconds
from lakehouse.cli.output.printing import conclude, count
from lakehouse.orchestration.runs.erasure_runs import SENSOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.privacy.erasable import Erasable
    from lakehouse.privacy.erasure import Erasure
    from lakehouse.privacy.erasure_record import ErasureRecord
    from lakehouse.privacy.identity import Named
    from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
    from lakehouse.privacy.run_erasure import WouldGo
    from lakehouse.privacy.verifier.report import Finding


@command("erase")
@click.argument("people", metavar="[SUBJECT=VALUE]...", nargs=-1)
@click.option(
    "--request",
    "request_id",
    metavar="ID",
    required=True,
    help="The request's id, such as R-17: a letter or digit, and up to 63 letters, digits, dots,"
    " hyphens and underscores; the same id continues the request.",
)
@why_option("Why; it is kept with the request, without a value of the person.", required=False)
@by_option
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read people from a file with lines of SUBJECT=VALUE.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Count what would be erased; change nothing."
)
@click.option(
    "--now",
    is_flag=True,
    help="Remove unreferenced files at once instead of after a day.",
)
@click.option(
    "--erase-whole",
    metavar="FILE",
    multiple=True,
    help="Empty an unreadable delivered file of a feed of people, by its key or SHA-256.",
)
@click.option(
    "--elsewhere-done",
    is_flag=True,
    help="Confirm that the reported places outside of the lakehouse are done.",
)
def erase(
    state: State,
    people: tuple[str, ...],
    request_id: str,
    why: str,
    by: str,
    file: Path | None,
    is_dry: bool,
    now: bool,
    erase_whole: tuple[str, ...],
    elsewhere_done: bool,
) -> None:
    """Erase people from all data of the lakehouse.

    Name a person by the subject column (customer_id=123) or by an identifying column
    (customer_email=a@b.c). A value of - reads values from standard input, one per line; a single
    - reads lines of SUBJECT=VALUE. The same request continues an unfinished erasure; naming the
    people again is optional.

    Readers stop seeing the person at once. Files are removed a day later by the same command or
    by `lakehouse dev`, or immediately with --now. Past states of the tables with personal data are
    then not readable, and no writes are allowed during the removal. On aws, unreferenced
    files always wait for a day, since another host may be committing them.
    """
    from lakehouse.privacy.erasure import How
    from lakehouse.privacy.folder import check_request_id
    from lakehouse.privacy.run_erasure import erase as erase_people

    check_request_id(request_id)
    named = parse_people(people, file) if people or file else []
    there = state.project.erasable(state.settings, state.engine)
    if is_dry:
        _dry_run(state, there, named)
        return
    how = How(by, why, now, erase_whole, elsewhere_done)
    erasure = erase_people(there, request_id, named, how, progress=state.progress)
    is_done = not (erasure.failed_search or erasure.not_emptied)
    conclude(_done(erasure), _complaints(erasure), success=is_done)


def _dry_run(state: State, there: "Erasable", named: "Sequence[Named]") -> None:
    from lakehouse.privacy.run_erasure import dry_run

    with state.progress("Counting what would go"):
        would_go = dry_run(there, named)
    conclude(_would_go(would_go), (), success=True)


def _would_go(would_go: "WouldGo") -> Iterator[str]:
    yield from _unknown(would_go.unknown)
    yield from _rows(would_go.rows)
    for key, rows in sorted(would_go.files.items()):
        yield f"{key}: {count(rows, 'row')}" if rows else f"{key}: cannot be told"
    for name in would_go.sums:
        yield f"{name}: computed anew"
    for name in would_go.kept:
        yield f"{name}: keeps its sums, as declared"
    yield from map(_place, would_go.places)
    yield "Nothing was changed."


def _unknown(people: int) -> Iterator[str]:
    if people:
        verb = "is" if people == 1 else "are"
        noun = "person" if people == 1 else "people"
        yield f"{people:,} {noun} of those who were named {verb} not found."


def _rows(by_table: "Mapping[str, Mapping[str, int]]") -> Iterator[str]:
    for table, by_ref in by_table.items():
        refs = [f"{count(rows, 'row')} of {ref}" for ref, rows in sorted(by_ref.items())]
        yield f"{table}: {', '.join(refs)}"


def _place(place: "ScrubbedPlace") -> str:
    parts: list[str] = [place.outcome]
    if place.values:
        parts.append(count(place.values, "value"))
    if place.files and place.outcome == "removed":
        parts.append(count(place.files, "file"))
    if place.why:
        parts.append(place.why.rstrip("."))
    return f"{place.place}: {'; '.join(parts)}"


def _done(erasure: "Erasure") -> Iterator[str]:
    record = erasure.record
    yield from _unknown(record.unknown)
    if erasure.request.is_final and erasure.search_report is None:
        # Already done, or nothing to do.
        yield _state(erasure)
        return
    yield from _erased(record)
    yield from map(_place, record.places)
    if erasure.search_report:
        yield from _shared(erasure.search_report.shared)
    yield _state(erasure)


def _shared(findings: "Sequence[Finding]") -> Iterator[str]:
    """Yield one line per column: values such as first names occur in many files."""
    files: dict[str, set[str]] = {}
    for finding in findings:
        files.setdefault(finding.column or finding.kind, set()).add(finding.file)
    for what, found in files.items():
        yield (
            f"{what}: shared with somebody who remains, and stays in"
            f" {count(len(found), 'file')}, such as {min(found)}"
        )


def _erased(record: "ErasureRecord") -> Iterator[str]:
    yield from _rows(record.rows)
    for table, tags in record.tags.items():
        yield f"{table}: tags moved or dropped: {', '.join(tags)}"
    for file in record.files:
        yield f"{file.key}: {count(file.rows, 'row')}"
    for unreadable in record.unreadable:
        yield f"{unreadable.key}: may hold the person: {unreadable.why}"
    for name in record.recomputed:
        yield f"{name}: computed anew"
    for name in record.kept:
        yield f"{name}: keeps its sums, as declared"


def _state(erasure: "Erasure") -> str:
    request = erasure.request
    name = request.request_id
    if request.state == "verified":
        return f"{name} is verified: nothing of it is left, and its values are destroyed."
    if request.state == "not_found":
        return f"{name}: not found. Nothing holds who was named; this is recorded."
    if (
        request.state == "pending_physical"
        and request.physical_due_at
        and not erasure.search_report
    ):
        return (
            f"{name} is pending_physical: readers see nothing of it. The rest can be removed from"
            f" {utc_seconds(request.physical_due_at)} on: by itself while `lakehouse dev` runs"
            f" (the sensor {SENSOR}), or by `lakehouse erase --request {name}`."
        )
    if request.state == "exception" and not erasure.failed_search:
        return (
            f"{name} is an exception: nothing that was searched contains them. The owners of the"
            f" places above must erase them there until {request.due_at.date().isoformat()}, then"
            f" `lakehouse erase --request {name} --elsewhere-done`."
        )
    return f"{name} is {request.state}, and not proved."


def _complaints(erasure: "Erasure") -> Iterator[str]:
    for file in erasure.not_emptied:
        yield (
            f"--erase-whole {file}: it was not emptied; expected the key or SHA-256 of a delivered"
            " file that cannot be read, of a feed with people."
        )
    yield from erasure.record.pending_removals
    if erasure.failed_search:
        yield from erasure.failed_search.as_text().splitlines()[:1]
        yield from erasure.failed_search.obstacles
        yield (
            "If a delivered file is named above: repair or remove it, declare the personal"
            " columns of its feed, or empty it by its key or SHA-256: lakehouse erase --request"
            f" {erasure.request.request_id} --erase-whole FILE"
        )
