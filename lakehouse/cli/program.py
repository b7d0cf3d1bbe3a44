"""The command group, and the conversion of errors to one line and an exit code."""

import logging
import traceback
from collections.abc import Sequence
from typing import Any

import click

from lakehouse.cli.call_context import State, verbose_option
from lakehouse.cli.deliveries.ingest import ingest
from lakehouse.cli.deliveries.publish_and_reject import publish, reject
from lakehouse.cli.deliveries.quarantine import quarantine
from lakehouse.cli.output.printing import complain
from lakehouse.cli.people.erase import erase
from lakehouse.cli.people.erasures import erasures
from lakehouse.cli.people.export import export
from lakehouse.cli.project.cluster import connect_conf, pack_python
from lakehouse.cli.project.contract import contract
from lakehouse.cli.project.demo import demo, generate
from lakehouse.cli.project.dev import dev
from lakehouse.cli.project.docs import docs
from lakehouse.cli.project.doctor import doctor
from lakehouse.cli.project.init import init
from lakehouse.cli.project.new import new
from lakehouse.cli.project.setup import setup
from lakehouse.cli.tables.alerts import alerts
from lakehouse.cli.tables.backfill import backfill, retry
from lakehouse.cli.tables.check import check
from lakehouse.cli.tables.copy import copy
from lakehouse.cli.tables.cost import cost
from lakehouse.cli.tables.diff import diff
from lakehouse.cli.tables.files import files
from lakehouse.cli.tables.history import history
from lakehouse.cli.tables.maintain import maintain
from lakehouse.cli.tables.mute import mute
from lakehouse.cli.tables.plan import apply, plan
from lakehouse.cli.tables.preview import preview
from lakehouse.cli.tables.sql import sql
from lakehouse.cli.tables.status import status
from lakehouse.cli.tables.try_table import try_table
from lakehouse.errors import LakehouseError
from lakehouse.storage.atomic_files import keep_private

INTERRUPTED = 130
"""Shell convention for a program that Ctrl-C stopped."""


UNREAD = 141
"""Shell convention for a closed output pipe, as with `| head -1`."""


class _Group(click.Group):
    def invoke(self, context: click.Context) -> Any:
        """Run a command; stop if the output pipe is closed, as other programs do."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            context.exit(UNREAD)

    def list_commands(self, _: click.Context) -> list[str]:
        """List commands in the order for new users."""
        return list(self.commands)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lakehouse")
def lakehouse() -> None:
    """Iceberg tables as Dagster assets, on Spark.

    Exit codes: 0 done, 1 the work failed, 2 the command is wrong, 130 stopped by Ctrl-C, 141
    the output pipe was closed.
    """


lakehouse.params.append(verbose_option())
_COMMANDS = (
    *(demo, generate, init, new, ingest, backfill, retry, publish, reject, quarantine),
    *(check, maintain, cost, copy, alerts, mute, sql, status, docs, files, history, contract),
    *(diff, try_table, preview, export, erase, erasures, plan, apply),
    *(dev, doctor, connect_conf, pack_python, setup),
)
for _command in _COMMANDS:
    lakehouse.add_command(_command)


def run(arguments: Sequence[str], program: str = "lakehouse") -> int:
    """Run a command and return its exit code; errors are one line on standard error."""
    keep_private()
    state = State()
    # PySpark logs each SQL error with its Java stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        code = lakehouse.main(
            list(arguments), prog_name=program, standalone_mode=False, obj=state
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _stopped()
    except Exception as error:
        if _was_interrupted(error):
            return _stopped()
        if state.verbose:
            traceback.print_exc()
        complain(_one_line(error, state))
        return error.exit_code if isinstance(error, LakehouseError) else 1
    return code or 0


def _stopped() -> int:
    complain("stopped. What was published stays; the same command again does what is left.")
    return INTERRUPTED


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: PySpark calls the JVM again, which may have stopped."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return any(isinstance(found, KeyboardInterrupt) for found in chain)


def _one_line(error: Exception, state: State) -> str:
    if isinstance(error, LakehouseError):
        return str(error)
    from lakehouse.iceberg.frames.spark_errors import known_error, plain, text_of
    from lakehouse.spark.spark_folders import log_file

    text = text_of(error)
    hint = "" if state.verbose else " Run it again with --verbose for the traceback."
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        hint = f" Spark's log is {log_file(state.settings)}.{hint}"
    return known_error(text) or f"{plain(text).rstrip('.')}.{hint}"
