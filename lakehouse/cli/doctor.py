"""`lakehouse doctor`: whether this machine has what the lakehouse needs."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count
from lakehouse.errors import LakehouseError


@command("doctor")
def doctor(state: State) -> None:
    """Check what the lakehouse needs of this machine.

    Each line that fails says what to do, and then the exit code is 1.
    """
    from lakehouse.cli.machine_checks import findings

    with state.progress("Looking at this machine"):
        found = findings(state.settings)
    width = max(len(one.name) for one in found)
    for one in found:
        step = f" {one.next_step}" if one.next_step else ""
        click.echo(f"{'ok  ' if one.ok else 'FAIL'}  {one.name:{width}}  {one.found}{step}")
    failing = [one.name for one in found if not one.ok]
    if failing:
        raise LakehouseError(f"{count(len(failing), 'check')} failed: {', '.join(failing)}.")
