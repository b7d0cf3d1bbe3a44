"""The IO manager: reads and writes the tables of assets.

Delivered files do not use it: `lakehouse.ingestion.land` writes them to bronze.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import DeclarationError, FrameMismatch
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.iceberg.frames.frames import arrow_to_spark
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.type_conversion import of_spark
from lakehouse.iceberg.read.inputs import Input, latest
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.read.pinned_inputs import pin
from lakehouse.iceberg.rules import evaluation
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Pin, Refused, RuleResult
from lakehouse.iceberg.write import write_audit_publish
from lakehouse.orchestration.asset_checks import Evaluated
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import set_data_version, step_started_at
from lakehouse.orchestration.failure_texts import blocked_failure
from lakehouse.orchestration.partitions.partition_bounds import partitions_of
from lakehouse.orchestration.table_jobs.job_choice import NO_JOBS, TableJobs
from lakehouse.orchestration.withheld_values import values_withheld
from lakehouse.orchestration.written_metadata import (
    pin_metadata,
    suppression_warnings,
    written_metadata,
)
from lakehouse.tables.table import Column, IcebergTable, Overwrite

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def to_spark(spark: "SparkSession", frame: "pd.DataFrame") -> "DataFrame":
    """Return a pandas DataFrame as a Spark one, with types by Arrow instead of guesses."""
    import pyarrow as pa

    return arrow_to_spark(spark, pa.Table.from_pandas(frame, preserve_index=False))


def to_pandas(frame: "DataFrame") -> "pd.DataFrame":
    """Collect a Spark frame into pandas; moments are in UTC."""
    if is_spark_3():
        return frame.toPandas()
    # Spark 4.1 calls pandas 3 in ways that it warns of; Arrow does not.
    return frame.toArrow().to_pandas(maps_as_pydicts="strict")


class IcebergIOManager(dg.ConfigurableIOManager):
    """Writes DataFrames to Iceberg tables and reads them; asset `[layer, table]` is `layer.table`.

    `declared` contains the declared tables by name. A plain asset without a declaration gets a
    table with the columns of its DataFrame. Rows of erased data subjects (`suppression`) are not
    written or read. `jobs` maps tables to AWS jobs.
    """

    engine: dg.ResourceDependency[Engine]
    declared: dg.ResourceDependency[Mapping[str, IcebergTable]]
    suppression: dg.ResourceDependency[SuppressionList] = NO_SUPPRESSION  # type: ignore[assignment]
    jobs: dg.ResourceDependency[TableJobs] = NO_JOBS  # type: ignore[assignment]

    def write(
        self,
        table: IcebergTable,
        compute: "Callable[..., DataFrame]",
        inputs: Mapping[str, Input] | None = None,
        run: Run | None = None,
    ) -> Outcome:
        """Compute a table and publish the result if its rules pass; see `iceberg.write`."""
        return write_audit_publish.write(
            self.engine,
            self.with_layer(table),
            compute,
            inputs,
            run,
            suppression=self.suppression,
        )

    def with_layer(self, table: IcebergTable) -> IcebergTable:
        """Return a table with the upkeep policy of its layer."""
        known = self.declared.get(table.name, table)
        return table if known.upkeep == table.upkeep else replace(table, upkeep=known.upkeep)

    def read(self, pinned: Pin, where: str | None = None) -> "DataFrame":
        """Return the DataFrame of a pinned input."""
        return read(self.engine, pinned, where)

    def evaluate(self, table: IcebergTable, run: Run) -> tuple[list[RuleResult], Evaluated]:
        """Evaluate the rules on published rows, only in the run's partitions if it has some."""
        main = read_history(self.engine, table.name).main
        snapshot_id = main.snapshot_id if main else None
        results = evaluation.evaluate(self.engine, table, run.partitions, snapshot_id)
        return results, Evaluated("main", snapshot_id, partitions=run.partition_values)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Write the Spark or pandas DataFrame that a plain asset returned."""
        name = table_name(context.asset_key)
        frame = self._spark_frame(name, obj)
        table = self.declared.get(name) or self._inferred(context, name, frame)
        with values_withheld(table):
            outcome = self.write(table, lambda: frame, run=self._run(context, table))
        for warning in suppression_warnings(outcome.suppressed_rows):
            context.log.warning(warning)
        if isinstance(outcome, Refused):
            raise blocked_failure(outcome, context.run_id)
        context.add_output_metadata(written_metadata(self.engine.catalog, table, outcome))
        if outcome.snapshot_id:
            set_data_version(context, str(outcome.snapshot_id))

    def load_input(self, context: dg.InputContext) -> Any:
        """Return the pinned upstream table in the requested partitions, as Spark or pandas."""
        name = table_name(context.asset_key)
        pinned = pin(self.engine, {name: latest(name)}, name)[name]
        # Dagster attaches input metadata to one partition and not to a range.
        if not context.has_asset_partitions or len(context.asset_partition_keys) == 1:
            context.add_input_metadata(pin_metadata(pinned))
        frame = self._without_erased_rows(
            context, name, self.read(pinned, self._where(context, name))
        )
        return to_pandas(frame) if _wants_pandas(context) else frame

    def _run(self, context: dg.OutputContext, table: IcebergTable) -> Run:
        if not context.has_asset_partitions:
            return Run(context.run_id, read_snapshots=self._read_snapshots(context))
        definition, keys = context.asset_partitions_def, context.asset_partition_keys
        return Run(context.run_id, run_partitions(definition, keys, table))

    def _read_snapshots(self, context: dg.OutputContext) -> dict[str, int]:
        """Return the snapshots of the upstream tables at the start of the step.

        The function can read a table itself, at a newer snapshot. An older watermark costs one
        more run; a newer one would miss rows.
        """
        started_at = step_started_at(context)
        snapshots = {}
        for dep in context.asset_spec.deps:
            name = table_name(dep.asset_key)
            if dep.asset_key == context.asset_key or not self.engine.catalog.has(name):
                continue
            if snapshot := read_history(self.engine, name).seen_at(started_at):
                snapshots[name] = snapshot.snapshot_id
        return snapshots

    def _without_erased_rows(
        self, context: dg.InputContext, name: str, frame: "DataFrame"
    ) -> "DataFrame":
        suppressed, table = self.suppression.filter(), self.declared.get(name)
        if table is None or not suppressed.is_active:
            return frame
        kept = suppressed.exclude(table, frame)
        for warning in suppression_warnings(suppressed.rows):
            context.log.warning(warning)
        return kept

    def _spark_frame(self, name: str, obj: Any) -> "DataFrame":
        import pandas as pd
        from pyspark.sql import DataFrame

        if isinstance(obj, DataFrame):
            return obj
        if isinstance(obj, pd.DataFrame):
            return to_spark(self.engine.spark, obj)
        raise FrameMismatch(
            f"{name} was given a {type(obj).__name__}; expected a frame of Spark or pandas.",
            next_step="Return one from the asset.",
        )

    def _inferred(
        self, context: dg.OutputContext, name: str, frame: "DataFrame"
    ) -> IcebergTable:
        if context.has_asset_partitions:
            raise _undeclared(name)
        comment = context.asset_spec.description or f"The asset {name}."
        return inferred_table(name, comment, frame.schema)

    def _where(self, context: dg.InputContext, name: str) -> str | None:
        if not context.has_asset_partitions:
            return None
        keys, definition = context.asset_partition_keys, context.asset_partitions_def
        if set(keys) == set(definition.get_partition_keys()):
            return None
        table = self.declared.get(name)
        if table is None or not table.overwritten_by:
            raise _undeclared(name)
        return run_partitions(definition, keys, table).predicate(table.overwritten_by)


def run_partitions(
    definition: dg.PartitionsDefinition, keys: Sequence[str], table: IcebergTable
) -> Partitions:
    """Return the partitions of a run; without an overwrite column, time partitions are dates."""
    by = table.overwritten_by or ""
    default = "date" if isinstance(definition, dg.TimeWindowPartitionsDefinition) else "string"
    column_type = table.column(by).type if by else default
    return partitions_of(definition, keys, column=by, column_type=column_type)


def _wants_pandas(context: dg.InputContext) -> bool:
    return getattr(context.dagster_type.typing_type, "__module__", "").split(".")[0] == "pandas"


def _undeclared(name: str) -> DeclarationError:
    return DeclarationError(
        f"{name} is a partitioned asset, and no declared table is overwritten by its partitions;"
        " expected an IcebergTable with write=OverwritePartitions(by=…).",
        next_step="Declare its table.",
    )


def inferred_table(name: str, comment: str, schema: "StructType") -> IcebergTable:
    """Return a table with the columns of a DataFrame, replaced by each write."""
    columns = [Column(field.name, str(of_spark(field.dataType))) for field in schema.fields]
    return IcebergTable(name, comment, columns, write=Overwrite())
