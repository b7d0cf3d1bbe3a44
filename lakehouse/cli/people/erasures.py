"""`lakehouse erasures`: lists erasure requests and verifies them again; no JVM."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command, verbose_option
from lakehouse.cli.options import ShowGroup, by_option, parse_people, why_option
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import conclude, count, printable, table
from lakehouse.cli.output.record_output import print_records, table_or_json, text_or_json

if TYPE_CHECKING:
    from lakehouse.privacy.requests import Request

_COLUMNS = ("request", "state", "people", "requested", "due", "removed from", "by", "why")


@click.group("erasures", cls=ShowGroup, invoke_without_command=True)
@table_or_json
@click.pass_context
def erasures(context: click.Context, form: str) -> None:
    """List the requests to erase people.

    `lakehouse erasures ID` shows one, and `verify ID` searches for its people again. States:
    requested, logically_deleted (readers do not see the person), pending_physical (old files
    wait for their removal), verified, not_found, or exception (a place cannot be reached).
    Requests are due after one month. Times are in UTC.
    """
    from lakehouse.privacy.requests import read_requests

    state: State = context.find_object(State)  # type: ignore[assignment]
    if context.invoked_subcommand is None:
        _list(read_requests(state.settings), form)


erasures.params.append(verbose_option())


@command("show")
@click.argument("request_id", metavar="ID")
@table_or_json
def show(state: State, request_id: str, form: str) -> None:
    """Show one request, and what it does not reach."""
    from lakehouse.privacy.requests import read_request

    _list([read_request(state.settings, request_id)], form)


@command("allow")
@click.argument("people", metavar="SUBJECT=VALUE", nargs=-1, required=True)
@why_option("Why, such as a new contract; it is kept.")
@by_option
def allow(state: State, people: tuple[str, ...], why: str, by: str) -> None:
    """Let new rows of erased people land again.

    Name each person by the column and the id that were erased; - reads standard input. Erased
    rows stay erased; rows that arrive or are computed from now on are kept. The user and the
    reason are recorded in privacy/gone.json, the user and the time in audit.gdpr_actions.
    """
    from lakehouse.privacy.requests import allow_people

    there = state.project.erasable(state.settings, state.engine)
    named = parse_people(people)
    allow_people(there, named, by=by, why=why)
    click.echo(f"New rows of {count(len(named), 'person')} land again.")


@command("verify")
@click.argument("request_id", metavar="ID")
@click.option(
    "--subject",
    "people",
    metavar="SUBJECT=VALUE",
    multiple=True,
    help="A value to search in every byte; - in place of it reads standard input.",
)
@text_or_json
def verify(state: State, request_id: str, people: tuple[str, ...], form: str) -> None:
    """Search for the people of a request once more.

    The values are destroyed once a request is verified. The remaining keyed hashes are compared
    with the decoded values of the declared columns; with --subject, every byte is searched for
    the given value. The audit log of all requests is verified too. Exits with 1 if this is
    no proof, or if the audit log was changed.
    """
    from lakehouse.privacy.audit_chain import verify_chain
    from lakehouse.privacy.erasure_search import search_again

    named = parse_people(people) if people else []
    there = state.project.erasable(state.settings, state.engine)
    with state.progress("Searching every byte" if named else "Comparing columns"):
        report = search_again(there, request_id, named)
        chain = verify_chain(state.settings, state.engine, there.audit)
    if form == "json":
        record = {
            "table": there.audit.name,
            "rows": chain.rows,
            "is_whole": chain.is_whole,
            "broken_at": chain.broken_at,
        }
        shown = {**report.as_json(), "record": record}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=1))
    lines = [*report.as_text().splitlines(), f"{there.audit.name}: {chain}."]
    success = report.is_proof and chain.is_whole
    conclude([] if form == "json" else lines, (), success=success)


for _command in (show, verify, allow):
    erasures.add_command(_command)


def _list(requests: "Sequence[Request]", form: str) -> None:
    now = datetime.now(UTC)
    if form == "json":
        print_records(_record(request, now) for request in requests)
        return
    click.echo(_table(requests, now))
    for request in requests:
        for one in request.unreachable:
            click.echo(
                printable(
                    f"{request.request_id} does not reach {one.place}; its operator has to erase it"
                )
            )


def _table(requests: "Sequence[Request]", now: datetime) -> str:
    rows = []
    for request in requests:
        due_at = utc_seconds(request.due_at)
        due = f"{due_at}, late" if request.is_late(now) else due_at
        removed_at = utc_seconds(request.physical_due_at) if request.physical_due_at else ""
        times = (utc_seconds(request.requested_at), due, removed_at)
        by, people = (request.requested_by, request.why), len(request.people)
        rows.append([request.request_id, request.state, people, *times, *by])
    late = sum(request.is_late(now) for request in requests)
    footer = f"{count(len(rows), 'request')}; {late} late"
    return table(columns_named(_COLUMNS, numbers=("people",)), rows, footer=footer)


def _record(request: "Request", now: datetime) -> dict[str, Any]:
    record = asdict(request)
    return {"request": record.pop("request_id"), **record, "is_late": request.is_late(now)}
