"""A job tells what it published before it looks at all rows, which may be the last that it does."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from lakehouse import table_job
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Published, RuleResult
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.table_function import TableFunction
from lakehouse.orchestration.table_jobs.job_answer import answered_outcome
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.privacy.gone import GoneList
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit

RULE = not_null("id")
TABLE = IcebergTable(
    "gold.figures", "Figures.", [Column("id", "bigint")], Overwrite(), rules=[RULE]
)
OUTCOME = Published(
    TABLE.name, "abc", 7, results=(RuleResult(RULE, 0, 1),), operation="overwrite", added_rows=1
)


class Killed(BaseException):
    """What ends a process."""


def be_killed(*_: object, **__: object) -> None:
    raise Killed


def test_a_job_that_is_ended_while_it_looks_at_all_rows_has_told_what_it_published(
    aws_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        table_job,
        "open_platform_session",
        lambda catalog: (SimpleNamespace(version=4), catalog),
    )
    monkeypatch.setattr(table_job, "write", lambda *_, **__: OUTCOME)
    monkeypatch.setattr(table_job, "evaluate", be_killed)
    engine = Engine(Catalog.of(aws_settings), lambda: None, aws_settings.lock_dir, b"key")
    request = JobRequest.of(
        TABLE.name, Run(), aws_settings, engine, GoneList("1", None, {}), {}, [RULE.name]
    )
    told: list[object] = []
    pipes: Any = SimpleNamespace(report_custom_message=told.append, log=logging.getLogger())
    project: Any = SimpleNamespace(
        tables={TABLE.name: TABLE}, gone_people=lambda _: NO_SUPPRESSION
    )
    with pytest.raises(Killed):
        table_job._write(
            request, aws_settings, project, TableFunction(TABLE, be_killed), pipes, None
        )
    assert answered_outcome(told, [RULE]) == OUTCOME
