"""Upkeep of benchmark tables, as in `lakehouse maintain`."""

from collections.abc import Iterable
from datetime import datetime
from uuid import uuid4

from lakehouse.definitions import PROJECT
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.upkeep.upkeep_records import UpkeepRecord
from lakehouse.upkeep.upkeep_run import carry_out, plan_run


def keep_up(
    engine: Engine, tables: Iterable[str], now: datetime | None = None
) -> list[UpkeepRecord]:
    """Run the due upkeep of named tables and return its records.

    :param now: time for the plan; older snapshots than the policy's retention expire.
    :raises AssertionError: a step failed.
    """
    plan = plan_run(engine, PROJECT.upkept(), list(tables), named_by_user=True, now=now)
    records = carry_out(engine, PROJECT.upkept(), plan, run_id=uuid4().hex)
    failed = [record for record in records if record.outcome in ("failed", "partial")]
    assert not failed, failed
    return records
