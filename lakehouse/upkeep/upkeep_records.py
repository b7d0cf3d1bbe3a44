"""Records of upkeep steps in an Iceberg table: one append per run, read without Spark.

A table, not a local file: hosts with the same catalog share it, and SQL can query it.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Self, get_args

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.upkeep.step_result import StepName, StepOutcome
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.tables.table import IcebergTable

REMEMBERED = timedelta(days=90)
"""Age limit of records for planning."""
ENDED_AT = "ended_at"
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
"""Delay after a failed step; doubles after each further failure."""
_STORED_NAMES = {"step_metrics": "figures", "had_conflict": "lost_race"}
"""Names of fields in stored records, if they differ."""


@dataclass(frozen=True)
class UpkeepRecord:
    """An executed step of a table: estimate, result, and final metadata location of the run.

    If a table still has this `metadata_location`, no other commit has changed it. `step_metrics`
    are the metrics of `StepResult`.
    """

    table: str
    step: StepName
    outcome: StepOutcome
    ended_at: datetime
    metadata_location: str
    run_id: str = ""
    reason: str = ""
    promised_fewer_files: int = 0
    promised_cost_bytes: int = 0
    step_metrics: Mapping[str, float] = field(default_factory=dict)
    had_conflict: bool = False

    @property
    def has_evaluated(self) -> bool:
        """Whether the step evaluated the table: it neither failed nor had a conflict."""
        return self.is_done or (self.outcome == "skipped" and not self.had_conflict)

    @property
    def is_done(self) -> bool:
        """Whether the step did all or part of its work."""
        return self.outcome in ("done", "partial")

    @property
    def fewer_files(self) -> int:
        """Reduction of the number of files."""
        metrics = self.step_metrics
        return int(metrics.get("files_before", 0) - metrics.get("files_after", 0))

    @property
    def cost_bytes(self) -> int:
        """Bytes read and written; the estimate if the step does not count them."""
        metrics = self.step_metrics
        if "rewritten_bytes" not in metrics:
            return self.promised_cost_bytes if self.is_done else 0
        return int(metrics["rewritten_bytes"] + metrics.get("added_bytes", 0))

    def to_json(self) -> str:
        """Return the JSON form."""
        values = asdict(self) | {"ended_at": self.ended_at.isoformat()}
        return json.dumps({_STORED_NAMES.get(name, name): values[name] for name in values})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`; fields of earlier releases are ignored."""
        stored: dict[str, Any] = json.loads(text)
        values = {}
        for part in fields(cls):
            stored_name = _STORED_NAMES.get(part.name, part.name)
            if stored_name in stored:
                values[part.name] = stored[stored_name]
        values["ended_at"] = datetime.fromisoformat(values["ended_at"])
        return cls(**values)


@dataclass(frozen=True)
class PastUpkeep:
    """Records of past upkeep of all tables."""

    records: tuple[UpkeepRecord, ...] = ()

    @cached_property
    def _by_step(self) -> dict[tuple[str, StepName], list[UpkeepRecord]]:
        by_step = defaultdict(list)
        for record in sorted(self.records, key=lambda record: record.ended_at):
            by_step[record.table, record.step].append(record)
        return dict(by_step)

    def of(self, table: str, step: StepName) -> list[UpkeepRecord]:
        """Return the records of a step of a table, oldest first."""
        return self._by_step.get((table, step), [])

    def of_table(self, table: str) -> list[UpkeepRecord]:
        """Return the records of a table, oldest first."""
        records = [record for step in get_args(StepName) for record in self.of(table, step)]
        return sorted(records, key=lambda record: record.ended_at)

    def last_evaluated(self, table: str, step: StepName) -> UpkeepRecord | None:
        """Return the newest record of a step that evaluated the table; None without one."""
        evaluated = [record for record in self.of(table, step) if record.has_evaluated]
        return evaluated[-1] if evaluated else None

    def pause_until(self, table: str, step: StepName) -> datetime | None:
        """Return the end of the delay after failures or commit conflicts; None without one."""
        failures = 0
        records = self.of(table, step)
        for record in reversed(records):
            if record.has_evaluated:
                break
            failures += 1
        if not failures:
            return None
        pause = FIRST_PAUSE * (1 << min(failures - 1, 10))
        return records[-1].ended_at + min(pause, LONGEST_PAUSE)

    def spent_bytes(self, now: datetime) -> int:
        """Return the bytes read and written by all upkeep on this UTC day."""
        today = now.astimezone(UTC).date()
        return sum(
            record.cost_bytes
            for record in self.records
            if record.ended_at.astimezone(UTC).date() == today
        )


def record_upkeep(
    engine: Engine, log: IcebergTable, records: Sequence[UpkeepRecord], run_id: str
) -> int | None:
    """Append the records of a run in one commit; return its snapshot id.

    None without records or if the run is already recorded.

    :param log: the table `monitoring.upkeep_runs`.
    :param run_id: unique id of the run.
    """
    if not records:
        return None
    rows = [_row(record, run_id) for record in records]
    return append_once(engine, log, rows, run_id, made_at=ENDED_AT)


def past_upkeep(catalog: Catalog, log_name: str, now: datetime) -> PastUpkeep:
    """Return the upkeep records of the last 90 days; empty without any."""
    if not catalog.has(log_name):
        return PastUpkeep()
    from pyiceberg.expressions import GreaterThanOrEqual

    since = now - REMEMBERED
    # mypy's stubs, derived from pydantic fields, hide the PyIceberg constructors.
    recent = GreaterThanOrEqual(ENDED_AT, since.isoformat())  # type: ignore[call-arg,arg-type]
    scan = catalog.load(log_name).scan(recent, selected_fields=("record",))
    rows = scan.to_arrow().to_pylist()
    return PastUpkeep(tuple(UpkeepRecord.from_json(row["record"]) for row in rows))


def _row(record: UpkeepRecord, run_id: str) -> dict[str, Any]:
    return {
        "table_name": record.table,
        "step": record.step,
        "outcome": record.outcome,
        "reason": record.reason or None,
        ENDED_AT: record.ended_at,
        "promised_fewer_files": record.promised_fewer_files,
        "fewer_files": record.fewer_files,
        "promised_cost_bytes": record.promised_cost_bytes,
        "cost_bytes": record.cost_bytes,
        "seconds": record.step_metrics.get("seconds"),
        "record": record.to_json(),
        "run_id": run_id,
    }
