"""Try a table on sample rows, or on a file through all tables between, without writing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import FileRejected, TableNotFound, UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import RowFilter
from lakehouse.iceberg.frames.frames import arrow_to_spark
from lakehouse.iceberg.read.inputs import Input, latest
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.pinned_inputs import pin
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.prepared_frame import prepare
from lakehouse.iceberg.write.trial import Trial, compute_given
from lakehouse.iceberg.write.write_audit_publish import checked
from lakehouse.ingestion.read_delivered import DeliveredRows, read_delivered, without_rows
from lakehouse.ingestion.staged_frame import plan_landing_table
from lakehouse.orchestration.failure_texts import in_one_line
from lakehouse.orchestration.runs.dry_runs import no_rows, try_function
from lakehouse.orchestration.table_function import TableFunction
from lakehouse.orchestration.withheld_values import values_withheld
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import identifier, shown
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Functions = Mapping[str, TableFunction]
"""The function of each table, by table name."""
_OF_TARGET = ("existing_rows", "changed_keys")
"""Inputs derived from the other inputs and the table itself."""


@dataclass(frozen=True)
class Taken:
    """How many rows of a table or a file were read, and how many it has; None if not counted."""

    name: str
    rows: int
    total_rows: int | None


@dataclass(frozen=True)
class Tried:
    """The computed tables in order, the requested one last, and the inputs."""

    trials: tuple[Trial, ...]
    taken: tuple[Taken, ...]

    @property
    def table(self) -> Trial:
        return self.trials[-1]


@dataclass(frozen=True)
class TableTrials:
    """Tries tables of one lakehouse.

    `limit` is how many rows of each input, or of the file, are read. `suppressed` filters the
    rows of erased data subjects. `keep` caches what is computed.
    """

    engine: Engine
    functions: Functions
    declared: Mapping[str, IcebergTable]
    suppressed: RowFilter
    limit: int
    keep: Keep = keep_on_one_machine

    def of_tables(self, name: str) -> "TableTrial":
        """Return the trial that computes a table, as if it were empty, from the first rows of
        its inputs.
        """
        if feed := self.functions[name].feed:
            raise UsageError(
                f"{name} is filled by the feed {feed.name}; expected a file to try it on.",
                next_step=f"Run lakehouse try {name} --file FILE.",
            )
        trial = TableTrial(self, name, frozenset({name}))
        for declared in self.functions[name].inputs.values():
            if declared.table != name:
                trial.check_is_there(name, declared.table)
        return trial

    def check_function(self, name: str) -> None:
        """Call a table's function with empty inputs and compare its columns with the
        declaration; no Spark job runs.
        """
        function = self.functions[name]
        delivered = without_rows(function.feed) if function.feed else None
        trial = TableTrial(self, name, frozenset(), delivered=delivered)
        with in_one_line(function.table, function.compute, "lakehouse plan --functions"):
            # Spark Connect analyzes a plan only when the schema is read.
            _ = prepare(function.table, trial.compute_without_rows()).frame.schema

    def of_file(self, name: str, path: Path) -> "TableTrial":
        """Read a delivered file and return the trial of all tables between its feed and a
        table.
        """
        filled = fed_by(self.functions, name)
        if len(filled) != 1:
            raise UsageError(
                f"{name} follows from {_listed(filled)}; expected one feed that reads the file.",
                next_step="Try a table that follows from one feed.",
            )
        (bronze,) = filled
        feed = self.functions[bronze].feed
        assert feed is not None
        delivered = self._read(feed, path)
        follows = {
            table
            for table in upstream_of(self.functions, name)
            if bronze in upstream_of(self.functions, table)
        }
        return TableTrial(self, name, frozenset(follows), path.name, delivered)

    def _read(self, feed: Feed, path: Path) -> DeliveredRows:
        try:
            return read_delivered(feed, path, self.limit)
        except FileRejected as error:
            raise FileRejected(
                f"{shown(path.name)} would be rejected by the feed {feed.name}: {error.reason}",
                found=error.found,
                expected=error.expected,
                next_step=error.next_step,
            ) from None


@dataclass(frozen=True)
class TableTrial:
    """One trial: the tables to compute, and the results so far."""

    of: TableTrials
    target: str
    computed: frozenset[str]
    file: str = ""
    delivered: DeliveredRows | None = None
    trials: dict[str, Trial] = field(default_factory=dict)
    taken: dict[str, Taken] = field(default_factory=dict)

    def run(self) -> Tried:
        self._try(self.target)
        return Tried(tuple(self.trials.values()), tuple(self.taken.values()))

    def compute_without_rows(self) -> "DataFrame":
        function = self.of.functions[self.target]
        compute = checked(function.table, function.compute)
        if function.feed:
            return compute(**self._given(self.target))
        given = {
            name: self._no_rows(declared.table)
            for name, declared in function.inputs.items()
            if declared.mode not in _OF_TARGET
        }
        existing = no_rows(self.of.engine.spark, function.table)
        return compute_given(function.table, compute, function.inputs, given, existing)

    def _no_rows(self, name: str) -> "DataFrame":
        if table := self.of.declared.get(name):
            return no_rows(self.of.engine.spark, table)
        self.check_is_there(self.target, name)
        return read_main(self.of.engine, name).where("false")

    def _try(self, name: str) -> Trial:
        if name in self.trials:
            return self.trials[name]
        function, given = self.of.functions[name], self._given(name)
        if function.feed and self.delivered:
            catalog, added = self.of.engine.catalog, self.delivered.added_columns
            table, _ = plan_landing_table(function.feed, function.table, catalog, added)
            function = replace(function, table=table)
        table, compute = function.table, function.compute
        with values_withheld(table), in_one_line(table, compute, f"lakehouse try {name}"):
            self.trials[name] = try_function(
                self.of.engine,
                function,
                given,
                None,
                read_other=self._read_other,
                keep=self.of.keep,
            )
        return self.trials[name]

    def _given(self, name: str) -> "dict[str, DataFrame]":
        function = self.of.functions[name]
        if function.feed:
            (name,) = signature(function.compute).parameters
            return {name: self._file_rows(function)}
        given: dict[str, DataFrame] = {}
        for input_name, declared in function.inputs.items():
            if declared.mode not in _OF_TARGET:
                given[input_name] = self._input(name, declared)
        return given

    def _input(self, target: str, declared: Input) -> "DataFrame":
        if declared.table == target:
            return no_rows(self.of.engine.spark, self.of.functions[target].table)
        if declared.table in self.computed:
            trial = self._try(declared.table)
            stamp = trial.table.stamp
            stamped = [f"current_timestamp() AS {identifier(stamp)}"] if stamp else []
            return trial.rows.selectExpr("*", *stamped)
        self.check_is_there(target, declared.table)
        pinned_input = declared if declared.mode == "as_of" else latest(declared.table)
        pinned = pin(self.of.engine, {"": pinned_input}, target)[""]
        frame = self._without_erased(declared.table, read(self.of.engine, pinned))
        if self.file:
            return frame
        rows = self.of.limit if pinned.rows is None else min(self.of.limit, pinned.rows)
        self.taken[declared.table] = Taken(declared.table, rows, pinned.rows)
        return frame.limit(self.of.limit)

    def check_is_there(self, target: str, name: str) -> None:
        if not self.of.engine.catalog.has(name):
            raise TableNotFound(
                f"{target} reads {name}, which is not there yet.",
                next_step=(
                    "`lakehouse ingest` creates the tables of a feed; with --file, a table is"
                    " tried on a file only."
                ),
            )

    def _file_rows(self, function: TableFunction) -> "DataFrame":
        assert self.delivered is not None
        assert function.feed is not None
        taken = Taken(self.file, self.delivered.rows.num_rows, self.delivered.total_rows)
        self.taken[self.file] = taken
        frame = arrow_to_spark(self.of.engine.spark, self.delivered.rows)
        catalog, added = self.of.engine.catalog, self.delivered.added_columns
        _, names = plan_landing_table(function.feed, function.table, catalog, added)
        missing = [name for name in names if name not in frame.columns]
        nulls = (f"CAST(NULL AS STRING) AS {identifier(name)}" for name in missing)
        return self._without_erased(function.table.name, frame.selectExpr("*", *nulls))

    def _without_erased(self, name: str, frame: "DataFrame") -> "DataFrame":
        table = self.of.declared.get(name)
        if table is None or not self.of.suppressed.is_active:
            return frame
        return self.of.suppressed.exclude(table, frame)

    def _read_other(self, name: str) -> "DataFrame | None":
        if name in self.trials:
            return self.trials[name].rows
        engine = self.of.engine
        return read_main(engine, name) if engine.catalog.has(name) else None


def upstream_of(functions: Functions, name: str) -> set[str]:
    """Return a table and all of its upstream tables."""
    known: set[str] = set()
    waiting = [name]
    while waiting:
        table = waiting.pop()
        if table in known:
            continue
        known.add(table)
        if table in functions:
            waiting += [declared.table for declared in functions[table].inputs.values()]
    return known


def fed_by(functions: Functions, name: str) -> list[str]:
    """Return the upstream tables that are filled by a feed."""
    tables = sorted(upstream_of(functions, name))
    return [table for table in tables if table in functions and functions[table].feed]


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "no table that a feed fills"
