"""Two sources, a table that reads both and one that follows from it: stories of them played on
real tables, and compared with what the model says.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.evolve import row_level_mode
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import (
    Input,
    changed_keys,
    existing_rows,
    incremental,
    latest,
    versions_of,
)
from lakehouse.iceberg.read.stale_partitions import quarantined_values, stale_values
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.rules.rows import between, castable, not_null
from lakehouse.iceberg.values.value_ranges import AllPartitions, joined
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.iceberg.write import user_removals
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
    Versions,
    WriteMode,
)
from lakehouse_tests.iceberg.declarations import SOURCE, content, put, snapshot_id
from lakehouse_tests.iceberg.two_source_functions import (
    ARRIVAL,
    ID,
    function_of,
    sums_of_days,
    sums_of_keys,
)
from lakehouse_tests.iceberg.two_source_model import (
    BLOCKS,
    AddColumn,
    Clear,
    Compute,
    Delete,
    Deliver,
    Follower,
    Kind,
    Model,
    Reject,
    Rollback,
    RollbackTable,
    Row,
    RowLevels,
    Shape,
    SourceModel,
    State,
    Step,
)

_PLACES: dict[Kind, list[Any]] = {
    "date": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 9), None],
    "timestamp": [*(datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (5, 6, 23)), None],
    "string": ["east", "south", "west", None],
    "int": [1, 2, 7, None],
}
"""Partition values by the type of the column; the last is in no partition."""
_SPECS: dict[Kind, str] = {"date": "days(d)", "timestamp": "hours(d)"}
_STEPS: dict[Kind, Any] = {"date": timedelta(days=1), "timestamp": timedelta(hours=1), "int": 1}
_BEGIN = datetime(2024, 2, 1, tzinfo=UTC)
_EXTRA = Column("x", "string")
_serial = count()


@dataclass
class Source:
    """A source, and what the model knows of it."""

    table: IcebergTable
    model: SourceModel
    deliveries: list[RejectedDelivery] = field(default_factory=list)


@dataclass
class TwoSources:
    """Two sources, a table of both, and one that follows from it."""

    engine: Engine
    shape: Shape
    follower: Follower = "none"
    kind: Kind = "date"
    row_levels: RowLevels = "whole files"
    _published: dict[int, tuple[dict[str, Row], list[int | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number = next(_serial)
        self.model = Model(self.shape)
        self.places = _PLACES[self.kind]
        spec = _SPECS.get(self.kind, "d")
        # Of a source by days all hours of a day are stale; existing rows are of one hour.
        has_days = self.kind == "timestamp" and self.shape != "partitions"
        source_spec = "days(d)" if has_days else spec
        columns = [Column("k", "string"), Column("n", "bigint"), Column("d", self.kind)]
        self.sources = [
            Source(
                IcebergTable(
                    name=f"bronze.{name}_{number}",
                    comment="Rows as they were delivered.",
                    columns=[*columns, Column("v", "string"), *SOURCE, *ARRIVAL],
                    partitioning=[source_spec],
                    write=Append(),
                ),
                model,
            )
            for name, model in zip("ab", self.model.sources, strict=True)
        ]
        modes: dict[Shape, WriteMode] = {
            "merge": Merge(on=["k"]),
            "beside latest": Merge(on=["k"]),
            "last file": Merge(on=["k"]),
            "append": Append(once_by=("k",)),
            "overwrite": Overwrite(),
            "newest of all": Overwrite(),
        }
        has_versions = self.shape in ("merge", "beside latest", "versions", "newest of all")
        self.table = IcebergTable(
            name=f"silver.both_{number}",
            comment="Rows of both whose text is a number.",
            columns=[*columns, Column("v", "int"), *SOURCE],
            partitioning=[spec],
            write=modes.get(self.shape, OverwritePartitions(by="d")),
            rules=[
                castable("v", "int"),
                between("n", high=BLOCKS - 1, on_failure="block"),
                # Of what is read by days alone, the table refuses the others by itself.
                *([] if self.shape == "partitions" else [not_null("d")]),
            ],
            versions=Versions("k", ("n", *ID)) if has_versions else None,
        )
        by_day = self.follower == "days"
        self.sums = IcebergTable(
            name=f"gold.sums_{number}",
            comment="Rows and their sum.",
            columns=[
                Column("d", self.kind) if by_day else Column("k", "string"),
                Column("rows", "bigint"),
                Column("total", "bigint"),
            ],
            partitioning=[spec] if by_day else [],
            write=OverwritePartitions(by="d") if by_day else Merge(on=["k"]),
        )
        for source in self.sources:
            self._land(source, [])

    @property
    def inputs(self) -> dict[str, Input]:
        """What the table is computed from."""
        by: dict[str, Any] = {"by": "d"} if self.table.overwritten_by else {}
        reads: dict[Shape, Callable[..., Input]] = {
            "beside latest": incremental,
            "append": incremental,
            "partitions": incremental,
            "overwrite": latest,
        }
        read = reads.get(self.shape, versions_of)
        inputs = {
            name: read(source.table.name, **by)
            for name, source in zip("ab", self.sources, strict=True)
        }
        if self.shape == "beside latest":
            inputs["b"] = latest(self.sources[1].table.name)
        if self.shape == "partitions":
            inputs["stands"] = existing_rows(self.table.name, by="d")
        return inputs

    def play(
        self, steps: Sequence[Step], patch: pytest.MonkeyPatch, *, corrects: bool = False
    ) -> None:
        """Do the steps; then reject what blocks, replay and compute all.

        :param corrects: the function is corrected before the replay, and no step clears the
            quarantine.
        """
        if self.row_levels != "whole files":
            patch.setattr(row_level_mode, "LARGE_MIB", 0)
        if self.row_levels == "delete files":
            patch.setattr(row_level_mode, "MOST_CHANGED", math.inf)
        for step in steps:
            if isinstance(step, Compute):
                self._compute(step, patch)
            elif isinstance(step, Clear):
                if not corrects:
                    self._clear(step, patch)
            elif isinstance(step, RollbackTable):
                self._rollback_table(step.commits)
            else:
                self._change(self.sources[step.source], step)
        for source in self.sources:
            blocking = {row.id[:2] for row in source.model.rows if row.n == BLOCKS}
            for its in source.deliveries:
                if (its.source_file, its.sha256) in blocking:
                    self._reject(source, its)
        if corrects:
            self._compute(Compute(), patch)
            self.model.is_corrected = True
            for is_killed in (True, False):
                self._compute(Compute(replays=True, killed=is_killed), patch)
        self._compute(Compute(follows=True), patch)

    def _change(self, source: Source, step: Step) -> None:
        match step:
            case Deliver():
                self._deliver(source, step)
            case Reject() if source.deliveries:
                self._reject(source, source.deliveries[step.number % len(source.deliveries)])
            case Delete():
                self._delete(source, step.key)
            case Rollback():
                self._rollback(source, step.commits)
            case AddColumn():
                self._add_column(source)

    def _deliver(self, source: Source, step: Deliver) -> None:
        file = f"{'ab'[step.source]}-{step.file}"
        its = RejectedDelivery(file, sha256(repr(step.rows).encode()).hexdigest())
        has_extra = _EXTRA in source.table.columns
        arrival = next(_serial)
        rows = [
            Row(k, v, n, day, (file, its.sha256, at), arrival, f"x{n}" if has_extra else None)
            for at, (k, v, n, day) in enumerate(step.rows, 1)
        ]
        if its not in source.deliveries:
            source.deliveries.append(its)
        self._land(source, rows)

    def _land(self, source: Source, rows: Iterable[Row]) -> None:
        columns = source.table.columns
        values = [
            (
                *(row.k, row.n, self.places[row.day], row.v, *row.id),
                *[_BEGIN + timedelta(seconds=row.arrival)] * 2,
                *([row.x] if _EXTRA in columns else []),
            )
            for row in rows
        ]
        put(self.engine, source.table, values)
        known = {row.id for row in source.model.rows}
        self._committed(
            source, source.model.rows | {row for row in rows if row.id not in known}
        )

    def _reject(self, source: Source, its: RejectedDelivery) -> None:
        delivery = (its.source_file, its.sha256)
        with session_with(self.engine.spark, its.to_summary(by="somebody", why="why")):
            self._delete_from(source.table.name, its.deleted_by)
        if self.engine.catalog.has(f"{self.table.name}_quarantine"):
            self._delete_from(f"{self.table.name}_quarantine", its.deleted_by)
        rows = (row for row in source.model.rows if row.id[:2] != delivery)
        self._committed(source, rows, delivery)

    def _delete(self, source: Source, key: str) -> None:
        self._delete_from(source.table.name, f"k = '{key}'")
        self._committed(source, (row for row in source.model.rows if row.k != key))

    def _delete_from(self, table: str, where: str) -> None:
        self.engine.sql(f"DELETE FROM {self.engine.catalog.sql_name(table)} WHERE {where}")

    def _committed(
        self, source: Source, rows: Iterable[Row], rejected: tuple[str, str] | None = None
    ) -> None:
        at = snapshot_id(self.engine, source.table.name)
        if at is not None:
            self.model.committed(source.model, State(at, frozenset(rows), rejected))

    def _rollback(self, source: Source, commits: int) -> None:
        back = min(commits, len(source.model.line) - 1)
        if back < 1:
            return
        self.model.rolled_back(source.model, back)
        self._roll_back_to(source.table.name, source.model.line[-1].snapshot_id)

    def _roll_back_to(self, table: str, at: int) -> None:
        catalog = self.engine.catalog.name
        name = f"{catalog}.{table}"
        self.engine.sql(f"CALL {catalog}.system.rollback_to_snapshot('{name}', {at})")

    def _rollback_table(self, commits: int) -> None:
        if not self.engine.catalog.has(self.table.name):
            return
        past = [
            snapshot.snapshot_id
            for snapshot in read_history(self.engine, self.table.name).line
            if snapshot.snapshot_id in self._published
        ][commits : commits + 1]
        if past:
            self.model.table_rolled_back(self._published[past[0]])
            self._roll_back_to(self.table.name, past[0])

    def _add_column(self, source: Source) -> None:
        if _EXTRA not in source.table.columns:
            source.table = replace(source.table, columns=[*source.table.columns, _EXTRA])
            self._land(source, [])
        if _EXTRA not in self.table.columns:
            self.table = replace(self.table, columns=[*self.table.columns, _EXTRA])

    def _clear(self, step: Clear, patch: pytest.MonkeyPatch) -> None:
        waiting = self._content(f"{self.table.name}_quarantine", *ID)
        with patch.context() as dying:
            if step.killed:
                dying.setattr(user_removals, "session_with", _die)
            try:
                user_removals.clear_quarantine(
                    self.engine, self.table, by="somebody", why="why"
                )
            except Killed:
                return
        self.model.cleared |= {*waiting}

    def _compute(self, step: Compute, patch: pytest.MonkeyPatch) -> None:
        with patch.context() as dying:
            if step.killed:
                dying.setattr(branch, "fast_forward", _dying_for(self.table.name))
            for _ in range(2 if step.twice else 1):
                if not self._run(step) and self.table.overwritten_by:
                    # Where a day is blocked, the others are computed.
                    for day in step.days or range(3):
                        self._run(replace(step, days=(day,)))
        if step.follows:
            self._follow()

    def _run(self, step: Compute) -> bool:
        """Run the table; whether nothing was refused."""
        run = Run(
            f"run-{next(_serial)}",
            full_recompute=step.full_recompute or step.replays,
            reads_everything=step.replays,
        )
        if self.table.overwritten_by:
            partitions = self._partitions(self.table, self.inputs, step)
            if partitions is None:
                return True
            run = replace(run, partitions=partitions)
        function = function_of(self.table, self.shape, is_corrected=self.model.is_corrected)
        try:
            done = write(self.engine, self.table, function, self.inputs, run)
        except Killed:
            return True
        if isinstance(done, Refused):
            assert any(row.n == BLOCKS for row in self.model.accepted), "refused for nothing"
            return False
        self.model.computed()
        at = snapshot_id(self.engine, self.table.name)
        if at is not None:
            self._published[at] = self.model.table_state
        return True

    def _partitions(
        self, table: IcebergTable, inputs: dict[str, Input], step: Compute
    ) -> Partitions | None:
        asked = [self.places[at] for at in sorted(step.days or range(3))]
        if step.full_recompute:
            stale: set[Any] = {*asked}
        elif step.replays:
            stale = quarantined_values(self.engine, table, inputs)
        else:
            stale = stale_values(self.engine, table, inputs)
        # A row of no day goes along with the newest.
        values = [value for value in asked if _is_stale(value, stale)] or (
            self.places[2:3] if None in stale else []
        )
        if not values:
            return None
        names = tuple(map(str, values))
        step_between = _STEPS.get(self.kind)
        if step_between is None:
            return Partitions(names, (), AllPartitions(values=frozenset(self.places[:-1])))
        ranges, every = (
            tuple((value, value + step_between) for value in those)
            for those in (values, self.places[:-1])
        )
        return Partitions(names, ranges, AllPartitions(tuple(joined(every))))

    def _follow(self) -> None:
        name = self.table.name
        run = Run(f"run-{next(_serial)}")
        if self.follower == "none" or not self.engine.catalog.has(name):
            return
        if self.follower == "keys":
            inputs = {"changed": changed_keys(name, of="k", by="d"), "rows": latest(name)}
            write(self.engine, self.sums, sums_of_keys, inputs, run)
            return
        inputs = {"rows": latest(name, by="d")}
        partitions = self._partitions(self.sums, inputs, Compute())
        if partitions is not None:
            run = replace(run, partitions=partitions, full_recompute=False)
            write(self.engine, self.sums, sums_of_days, inputs, run)

    def check(self) -> None:
        """See that each delivered row is where it has to be, and nothing is anywhere else."""
        self._check_rows()
        self._check_quarantine()
        if self.follower != "none":
            self._check_sums()
        if self.table.overwritten_by:
            assert not stale_values(self.engine, self.table, self.inputs), "stale after a run"

    def _check_rows(self) -> None:
        has_extra = self.engine.catalog.has(self.table.name) and "x" in {
            column.name for column in self.engine.catalog.load(self.table.name).schema().fields
        }
        x = "x" if has_extra else "CAST(NULL AS string)"
        found = self._content(self.table.name, *ID, "k", "n", "d", "v", x)
        rows = [
            (*row.id, row.k, row.n, self._shown(row), self.model.value(row), row.x)
            for row in self.model.expected
        ]
        _compare("rows", found, rows)

    def _shown(self, row: Row) -> Any:
        """Return the partition value of a row as Spark returns it."""
        value = self.places[row.day]
        return value.replace(tzinfo=None) if isinstance(value, datetime) else value

    def _content(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return a table's rows; none of one that nothing was computed of."""
        is_there = self.engine.catalog.has(table)
        return content(self.engine, table, *columns) if is_there else []

    def _check_quarantine(self) -> None:
        waiting = self._content(f"{self.table.name}_quarantine", *ID)
        must, may = self.model.quarantine
        assert len(waiting) == len({*waiting}), f"twice in the quarantine: {waiting}"
        assert must <= {*waiting}, f"nowhere: {must - {*waiting}}"
        assert {*waiting} <= may, f"refused for nothing: {set(waiting) - may}"
        assert not self.model.cleared & {*waiting}, "refused again after it was cleared"

    def _check_sums(self) -> None:
        values: dict[Any, list[int]] = {}
        for row in self.model.expected:
            key = self._shown(row) if self.follower == "days" else row.k
            values.setdefault(key, []).append(self.model.value(row))
        sums = [(key, len(those), sum(those)) for key, those in values.items()]
        _compare("sums", self._content(self.sums.name), sums)


def _is_stale(value: Any, stale: set[Any]) -> bool:
    return value in stale or (isinstance(value, datetime) and value.date() in stale)


class Killed(Exception):
    """The process died."""


def _die(*_: object) -> None:
    raise Killed


def _dying_for(table: str) -> Callable[..., None]:
    publish = branch.fast_forward

    def fast_forward(engine: Engine, name: str, *rest: Any) -> None:
        if name == table:
            raise Killed
        publish(engine, name, *rest)

    return fast_forward


def _compare(what: str, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert found == sorted(expected, key=repr), f"{what}: {found} in place of {expected}"
