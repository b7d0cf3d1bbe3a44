"""`lakehouse doctor`: checks the requirements on this machine."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count
from lakehouse.errors import LakehouseError


@command("doctor")
def doctor(state: State) -> None:
    """Check what the lakehouse needs of this machine.

    Each failed line contains the next step, and the exit code is 1.
    """
    from lakehouse.cli.project.doctor_checks import findings

    with state.progress("Checking this machine"):
        results = findings(state.settings)
    width = max(len(result.name) for result in results)
    for result in results:
        step = f" {result.next_step}" if result.next_step else ""
        verdict = "ok  " if result.ok else "FAIL"
        click.echo(f"{verdict}  {result.name:{width}}  {result.found}{step}")
    failing = [result.name for result in results if not result.ok]
    if failing:
        raise LakehouseError(f"{count(len(failing), 'check')} failed: {', '.join(failing)}.")
