"""`lakehouse erasures verify`: searches again for the people of a request; no JVM."""

import json

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import conclude
from lakehouse.cli.output.records import text_or_json
from lakehouse.cli.subject_arguments import parse_people


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
    from lakehouse.privacy.proof import prove_again

    named = parse_people(people) if people else []
    there = state.project.erasable(state.settings, state.engine)
    with state.progress("Searching every byte" if named else "Comparing columns"):
        report = prove_again(there, request_id, named)
        chain = verify_chain(state.settings, state.engine, there.audit)
    success = report.is_proof and chain.is_whole
    if form == "json":
        record = {
            "table": there.audit.name,
            "rows": chain.rows,
            "is_whole": chain.is_whole,
            "why": chain.why,
        }
        shown = {**report.as_json(), "record": record}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=1))
        conclude((), (), success=success)
        return
    lines = [*report.as_text().splitlines(), f"{there.audit.name}: {chain}."]
    conclude(lines, (), success=success)
