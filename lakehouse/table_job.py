"""Compute one table in an AWS job, with the same function and write path as elsewhere.

Dagster Pipes transports the request, and the outcome or error.
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
from botocore.config import Config
from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesContext,
    PipesS3ContextLoader,
    PipesS3MessageWriter,
    open_dagster_pipes,
)

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import ErasedIds
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.discovery import declared_assets
from lakehouse.orchestration.failure_texts import in_one_line
from lakehouse.orchestration.io_manager import run_partitions
from lakehouse.orchestration.table_function import TableFunction, functions_by_table
from lakehouse.orchestration.table_jobs.job_answer import error_message, outcome_message
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.withheld_values import values_withheld
from lakehouse.project import Project, load_project
from lakehouse.settings import Settings
from lakehouse.spark.spark_session import open_platform_session
from lakehouse.storage.stores import open_store

_UPLOAD_SECONDS = 2.0
_UPLOAD_ATTEMPTS = 20
_DAGSTER_LOG = "dagster.builtin"
"""The logger returned by `dagster.get_dagster_logger`."""


class _ReadOnce(PipesS3ContextLoader):
    """Removes the request after reading it: it contains the keys that hash personal values."""

    @contextmanager
    def load_context(self, params: Any) -> Iterator[Any]:
        """Read the job's request."""
        where = {"Bucket": params["bucket"], "Key": params["key"]}
        with super().load_context(params) as context:
            version = self._client.head_object(**where).get("VersionId")
            # A versioned bucket retains the object unless its version is deleted.
            self._client.delete_object(**where, **({"VersionId": version} if version else {}))
            yield context


def main(archive: Path | None = None) -> int:
    """Compute the requested table and report the outcome; return 0, or 1 on failure.

    :param archive: the code archive for Python on executors.
    """
    # Dagster's writer gives up after one failed upload, and the outcome would be lost.
    patient = Config(retries={"mode": "standard", "total_max_attempts": _UPLOAD_ATTEMPTS})
    client = boto3.client("s3", config=patient)
    with open_dagster_pipes(
        context_loader=_ReadOnce(client),
        message_writer=PipesS3MessageWriter(client, interval=_UPLOAD_SECONDS),
        params_loader=PipesCliArgsParamsLoader(),  # type: ignore[no-untyped-call]
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
    """Compute and publish the requested table with this process's Spark, and report the
    outcome.

    :raises LakehouseError: on failure, without personal values.
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
    erasure_key = bytes.fromhex(request.erasure_key) if request.erasure_key else None
    suppressed = ErasedIds(erasure_key, request.erased_at)
    engine = Engine(
        catalog,
        lambda: session,
        settings.lock_dir,
        bytes.fromhex(request.masking_key),
        open_store=partial(open_store, settings),
    )
    outcome = write(
        engine,
        table,
        function.compute,
        function.inputs,
        Run(partitions=partitions, **request.run),
        suppression=replace(project.suppression_list(settings), read=lambda: suppressed),
    )
    pipes.report_custom_message(outcome_message(outcome))
    return outcome


def _function(project: Project, table: str) -> TableFunction:
    function = functions_by_table(declared_assets(project.modules)).get(table)
    if function is None:
        raise JobFailed(
            f"The job was requested for {table}, which no function of {project.package} computes;"
            " expected a table that is computed from others.",
            next_step="Correct LAKEHOUSE_JOBS.",
        )
    return function


def _forward_log(pipes: PipesContext) -> None:
    """Forward messages of functions to Dagster's logger."""

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            pipes.log.log(record.levelno, record.getMessage())

    log = logging.getLogger(_DAGSTER_LOG)
    log.addHandler(Forward())
    log.setLevel(logging.DEBUG)
