"""Computes one table in a job of AWS, on the Spark that is there: the same function by the same
write as anywhere else.

What it is asked comes by Dagster Pipes, and so does what it answers: the outcome, or the error.
"""

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesContext,
    PipesEnvVarParamsLoader,
    PipesS3ContextLoader,
    open_dagster_pipes,
)

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import BegunWrite, NoListener
from lakehouse.iceberg.metadata.write_result import Outcome, Refused
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.discovery import declared_assets
from lakehouse.orchestration.io_manager import run_partitions
from lakehouse.orchestration.run_failures.function_error_text import in_one_line
from lakehouse.orchestration.run_failures.withheld_values import (
    cause_without_data,
    values_withheld,
)
from lakehouse.orchestration.table_function import TableFunction, functions_by_table
from lakehouse.orchestration.table_jobs.job_answer import (
    all_rows_message,
    begun_message,
    error_message,
    outcome_message,
)
from lakehouse.orchestration.table_jobs.job_messages import LastingMessageWriter
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.privacy.gone import GoneList
from lakehouse.project import Project, load_project
from lakehouse.runtime.spark import open_platform_session
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.table import IcebergTable

_UPLOAD_SECONDS = 2.0
_DAGSTER_LOG = "dagster.builtin"
"""The logger of what a function says by `dagster.get_dagster_logger`."""


class _ReadOnce(PipesS3ContextLoader):
    """Removes what it reads: it holds the keys that hash personal values."""

    @contextmanager
    def load_context(self, params: Any) -> Iterator[Any]:
        """Read what the job is asked."""
        where = {"Bucket": params["bucket"], "Key": params["key"]}
        with super().load_context(params) as context:
            version = self._client.head_object(**where).get("VersionId")
            # Without its version, a bucket that keeps versions keeps it.
            self._client.delete_object(**where, **({"VersionId": version} if version else {}))
            yield context


class _TellBegun(NoListener):
    """Tells of each write that begins, so that its branch is dropped where the job is ended."""

    def __init__(self, pipes: PipesContext) -> None:
        self._pipes = pipes

    def begun(self, write: BegunWrite) -> None:
        """Tell of a write."""
        self._pipes.report_custom_message(begun_message(write.table.name, write.write_id))


def main(archive: Path | None = None) -> int:
    """Compute the table that is asked for, and say what came of it; return 0, or 1 where it
    failed.

    :param archive: of the code, for what Python runs on executors.
    """
    client = boto3.client("s3")
    by_arguments = PipesCliArgsParamsLoader()  # type: ignore[no-untyped-call]
    is_given = by_arguments.is_dagster_pipes_process()
    params_loader = by_arguments if is_given else PipesEnvVarParamsLoader()  # type: ignore[no-untyped-call]
    with open_dagster_pipes(
        context_loader=_ReadOnce(client),
        message_writer=LastingMessageWriter(client, interval=_UPLOAD_SECONDS),
        params_loader=params_loader,
    ) as pipes:
        try:
            request = JobRequest.from_json(pipes.extras)
            compute(request, pipes, archive)
        except LakehouseError as error:
            pipes.report_custom_message(error_message(error))
            print(f"Error: {error}", file=sys.stderr)  # noqa: T201
            return 1
    return 0


def compute(request: JobRequest, pipes: PipesContext, archive: Path | None = None) -> Outcome:
    """Compute and publish the table that is asked for, on the Spark of this process; tell what came
    of it.

    :raises LakehouseError: what went wrong, without values of people.
    """
    _forward_log(pipes)
    with tempfile.TemporaryDirectory(prefix="lakehouse-home-") as home:
        settings = Settings(home=Path(home), deployment="aws", **request.settings)  # type: ignore[arg-type]
        project = load_project(settings)
        function = _function(project, request.table)
        table = project.tables[request.table]
        try:
            with values_withheld(table), in_one_line(table, function.compute):
                return _write(request, settings, project, function, pipes, archive)
        except LakehouseError:
            raise
        except Exception as error:
            raise JobFailed(f"{table.name} was not computed: {one_line(error)}") from error


def _write(
    request: JobRequest,
    settings: Settings,
    project: Project,
    function: TableFunction,
    pipes: PipesContext,
    archive: Path | None,
) -> Outcome:
    table, keys = project.tables[request.table], list(request.partitions)
    session, catalog = open_platform_session(Catalog.of(settings))
    if archive:
        session.sparkContext.addPyFile(str(archive))
    pipes.log.info(f"{table.name} is computed by Spark {session.version}.")
    definition = function.partitions_def
    partitions = run_partitions(definition, keys, table) if definition and keys else None
    gone = GoneList(
        "job", bytes.fromhex(request.gone_key) if request.gone_key else None, request.erased_at
    )
    engine = Engine(
        catalog,
        lambda: session,
        settings.lock_dir,
        bytes.fromhex(request.masking_key),
        listener=_TellBegun(pipes),
        open_store=partial(open_store, settings),
    )
    _note_dead(engine, request)
    outcome = write(
        engine,
        table,
        function.compute,
        function.inputs,
        Run(partitions=partitions, **request.run),
        gone=replace(project.gone_people(settings), read=lambda: gone),
    )
    # A job that is ended while it looks at all rows has published its table all the same.
    pipes.report_custom_message(outcome_message(outcome))
    _look_at_all_rows(engine, table, request, outcome, pipes)
    return outcome


def _look_at_all_rows(
    engine: Engine,
    table: IcebergTable,
    request: JobRequest,
    outcome: Outcome,
    pipes: PipesContext,
) -> None:
    """Tell what all rows tell of the rules that failed last, and hold for what was written; that it
    cannot be told fails nothing, since the table is published.
    """
    held = {result.rule.name for result in outcome.results if result.passed}
    looked_at = held & {*request.failed_last}
    if isinstance(outcome, Refused) or not looked_at:
        return
    rules = [rule for rule in table.rules if rule.name in looked_at]
    try:
        results = evaluate(engine, replace(table, rules=rules), snapshot_id=outcome.snapshot_id)
    except Exception as error:
        names = ", ".join(sorted(looked_at))
        cause = cause_without_data(error)
        pipes.log.warning(
            f"{table.name}: {names} failed last, and all rows could not be looked at: {cause}."
        )
    else:
        pipes.report_custom_message(all_rows_message(results))


def _note_dead(engine: Engine, request: JobRequest) -> None:
    """Note what the host that asks knows of, so that the write drops what is left of it."""
    for table, write_ids in request.dead_writes.items():
        with table_lock(engine, table) as log:
            for write_id in write_ids:
                log.begin(write_id)


def _function(project: Project, table: str) -> TableFunction:
    function = functions_by_table(declared_assets(project.modules)).get(table)
    if function is None:
        raise JobFailed(
            f"The job was asked for {table}, which no function of {project.package} computes;"
            " expected a table that is computed from others.",
            next_step="Correct LAKEHOUSE_JOBS.",
        )
    return function


def _forward_log(pipes: PipesContext) -> None:
    """Tell Dagster what functions say by its logger."""

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            pipes.log.log(record.levelno, record.getMessage())

    log = logging.getLogger(_DAGSTER_LOG)
    log.addHandler(Forward())
    log.setLevel(logging.DEBUG)
