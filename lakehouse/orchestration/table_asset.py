"""Factory of table assets: a declared table and the function that writes it, with its checks."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from types import MappingProxyType
from typing import Any

import dagster as dg

from lakehouse.iceberg.metadata.code_versions import computed_parts
from lakehouse.iceberg.metadata.commit_record import UNKNOWN_CODE, parts_of
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Published,
    Quarantined,
    Refused,
    RuleResult,
)
from lakehouse.orchestration.asset_checks import (
    Evaluated,
    check_result,
    check_specs,
    results_of,
)
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import table_spec
from lakehouse.orchestration.blocked_tables import need_full_check, note_blocked
from lakehouse.orchestration.failure_texts import blocked_failure
from lakehouse.orchestration.io_manager import IcebergIOManager, run_partitions
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.partitions.partition_bounds import (
    computed_bounds,
    computed_of,
    names_stretches,
)
from lakehouse.orchestration.runs.runs_for_stale_tables import (
    BACKFILL,
    RECOMPUTED_FOR_ERASURE,
    is_full_recompute,
)
from lakehouse.orchestration.withheld_values import (
    cause_without_data,
    values_withheld,
)
from lakehouse.orchestration.written_metadata import (
    quarantine_counts,
    quarantined_metadata,
    rows_by_partition,
    written_metadata,
)
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

_DATA_VERSION = "dagster/data_version"
_IS_OF_USER = "dagster/data_version_is_user_provided"
"""Tags by which Dagster stores the data version of a materialization."""


@dataclass(frozen=True)
class Written:
    """Result of an asset: the outcome of its write and additional metadata.

    `read`: state of the inputs by name; a blocked table stays blocked until it changes.
    """

    outcome: Outcome
    metadata: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)


Materialize = Callable[[dg.AssetExecutionContext, Run], Written]
Evaluate = Callable[[IcebergIOManager, Run], list[RuleResult]]
Event = dg.AssetCheckResult | dg.AssetCheckEvaluation | dg.MaterializeResult[Any]


def table_asset(
    table: IcebergTable,
    materialize: Materialize,
    *,
    description: str | None,
    deps: Sequence[dg.AssetKey] = (),
    kinds: frozenset[str] = frozenset(),
    resources: frozenset[str] = frozenset(),
    metadata: Mapping[str, Any] = MappingProxyType({}),
    implied: Mapping[Rule, Evaluate] = MappingProxyType({}),
    partitions_def: dg.PartitionsDefinition | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    code_version: str | None = None,
) -> dg.AssetsDefinition:
    """Make an asset of a table and the function that writes it; its checks can run separately.

    :param resources: resource keys that `materialize` needs in addition to the IO manager.
    :param metadata: additional definition metadata.
    :param implied: rules that follow from the inputs, with the function that evaluates them.
    :param code_version: None if unknown.
    """
    spec = table_spec(table, description=description, deps=deps, kinds=kinds | {"spark"})
    spec = spec.merge_attributes(metadata=metadata).replace_attributes(
        freshness_policy=freshness_policy or _freshness(table, partitions_def),
        skippable=True,
        code_version=code_version,
    )

    def body(context: dg.AssetExecutionContext) -> Iterator[Event]:
        keys = _partitions(context, partitions_def)
        run = _run(context, table, keys, partitions_def, code_version)
        step = _Step(context, context.resources.io_manager, table, run, keys, implied)
        if context.selected_asset_keys:
            yield from step.events(step.write(materialize))
        else:
            results, evaluated = step.evaluate(table, implied.values())
            yield from step.selected_checks(results, evaluated)

    with warnings.catch_warnings():
        # `backfill_policy` is beta since Dagster 1.3; each start would warn.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.multi_asset(
            name=table.name.replace(".", "__"),
            specs=[spec],
            check_specs=check_specs(table, tuple(implied)),
            partitions_def=partitions_def,
            backfill_policy=dg.BackfillPolicy.single_run() if partitions_def else None,
            can_subset=True,
            pool=table.name,
            required_resource_keys={"io_manager", *resources},
        )(body)


def _freshness(
    table: IcebergTable, definition: dg.PartitionsDefinition | None
) -> dg.FreshnessPolicy | None:
    # A policy of Dagster applies to a table, not to its partitions.
    if table.freshness is None or definition is not None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=table.freshness)


def _partitions(
    context: dg.AssetExecutionContext, definition: dg.PartitionsDefinition | None
) -> Sequence[str]:
    """Return the partition keys of the run; empty for an unpartitioned asset.

    The definition is a parameter, since the context has none if only checks are selected.
    """
    if definition is None or not (context.has_partition_key or context.has_partition_key_range):
        return ()
    if names_stretches(context.run.tags):
        return computed_of(context.run.tags, definition.get_partition_keys())
    keys: Sequence[str] = context.partition_keys
    return keys


def _run(
    context: dg.AssetExecutionContext,
    table: IcebergTable,
    keys: Sequence[str],
    definition: dg.PartitionsDefinition | None,
    code_version: str | None,
) -> Run:
    tags = context.run.tags
    return Run(
        context.run.run_id,
        run_partitions(definition, keys, table) if definition and keys else None,
        full_recompute=is_full_recompute(tags),
        # Downstream tables read the new snapshot.
        reads_everything=definition is None and tags.get(BACKFILL) == table.name,
        follows_erasures=RECOMPUTED_FOR_ERASURE in tags,
        code_version=code_version or "",
    )


@dataclass(frozen=True)
class _Step:
    """One execution of the asset or of its checks, for the partitions in `keys`."""

    context: dg.AssetExecutionContext
    io: IcebergIOManager
    table: IcebergTable
    run: Run
    keys: Sequence[str]
    implied: Mapping[Rule, Evaluate]

    def write(self, materialize: Materialize) -> Written:
        """Write the table, and log the result."""
        name, keys = self.table.name, self.keys
        started_at = monotonic()
        with values_withheld(self.table):
            written = materialize(self.context, self.run)
        seconds = monotonic() - started_at
        done = f"{len(keys):,} partitions, {keys[0]} to {keys[-1]}, " if keys else ""
        rows = "unchanged"
        if isinstance(written.outcome, Published):
            rows = f"{written.outcome.added_rows:,} rows written"
        elif isinstance(written.outcome, Refused):
            rows, done = "blocked", ""
        self.context.log.info(f"{name}: {done}{rows}, in {seconds:.1f} s.")
        return written

    def events(self, written: Written) -> Iterator[Event]:
        """Yield the check results and the materialization of a write, or raise its failure."""
        context, io, table, outcome = self.context, self.io, self.table, written.outcome
        evaluated = Evaluated.by(outcome)
        checks = self.selected_checks(outcome.results, evaluated)
        yield from self._unselected_checks(outcome.results, evaluated)
        if outcome.quarantined and table.quarantine:
            context.log_event(_quarantine_event(io, table.quarantine, outcome.quarantined))
        if isinstance(outcome, Refused):
            bounds = computed_bounds(context.run.tags) if self.keys else ()
            note_blocked(context.instance, context.run.run_id, table, bounds, written.read)
            yield from checks
            metadata = {**quarantine_counts(table, outcome).to_metadata(), **written.metadata}
            raise blocked_failure(outcome, context.run.run_id, metadata)
        result = dg.MaterializeResult[Any](
            asset_key=asset_key(table.name),
            metadata={
                **written_metadata(io.engine.catalog, table, outcome),
                **WriteMetadata(spark_page=io.engine.page() or None).to_metadata(),
                **written.metadata,
            },
            # Returned with the check results so that they refer to this materialization.
            check_results=self._with_full_checks(checks),
            tags=self._code_tags(),
            data_version=(
                dg.DataVersion(str(outcome.snapshot_id)) if outcome.snapshot_id else None
            ),
        )
        rows = rows_by_partition(io.engine.catalog, table, outcome, self.run.partitions)
        self._report_partitions(result, rows)
        yield result

    def evaluate(
        self, table: IcebergTable, evaluations: Iterable[Evaluate]
    ) -> tuple[list[RuleResult], Evaluated]:
        """Evaluate the rules of a table and implied rules; writes nothing."""
        with values_withheld(table):
            results, evaluated = self.io.evaluate(table, self.run)
            for evaluate in evaluations:
                results.extend(evaluate(self.io, self.run))
        return results, evaluated

    def selected_checks(
        self, results: Sequence[RuleResult], evaluated: Evaluated
    ) -> list[dg.AssetCheckResult]:
        """Return the results of the selected checks."""
        names = {key.name for key in self.context.selected_asset_check_keys}
        return [
            check_result(self.table, result, evaluated)
            for result in results_of(self.table, results, tuple(self.implied))
            if result.rule.name in names
        ]

    def _unselected_checks(
        self, results: Iterable[RuleResult], evaluated: Evaluated
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """Yield results of unselected rules, for example new rules of a queued run.

        Dagster does not accept them as `AssetCheckResult`.
        """
        names = {key.name for key in self.context.selected_asset_check_keys}
        for result in results:
            if result.rule.name not in names:
                check = check_result(self.table, result, evaluated)
                yield dg.AssetCheckEvaluation(
                    asset_key=asset_key(self.table.name),
                    check_name=result.rule.name,
                    passed=result.passed,
                    metadata=check.metadata,
                    severity=check.severity,
                    description=check.description,
                    blocking=result.rule.can_block,
                )

    def _with_full_checks(
        self, checks: Sequence[dg.AssetCheckResult]
    ) -> list[dg.AssetCheckResult]:
        """Return check results; checks that failed last and pass now are evaluated on all rows.

        After an error, such a check is omitted and keeps its last state: the table is published.
        """
        table = self.table
        passed = [check.check_name for check in checks if check.passed and check.check_name]
        names = need_full_check(self.context.instance, table, passed)
        if not names:
            return [*checks]
        failed_last = replace(table, rules=[rule for rule in table.rules if rule.name in names])
        implied = [evaluate for rule, evaluate in self.implied.items() if rule.name in names]
        full_step = replace(self, run=Run(self.run.run_id))
        try:
            results, evaluated = full_step.evaluate(failed_last, implied)
        except Exception as error:
            self.context.log.warning(
                f"{table.name}: {', '.join(sorted(names))} failed last and could not be evaluated"
                f" on all rows: {cause_without_data(error)}. `lakehouse check {table.name}` does."
            )
            return [check for check in checks if check.check_name not in names]
        full_results = {
            result.rule.name: check_result(table, result, evaluated) for result in results
        }
        checked = [check for check in checks if check.check_name not in names]
        return [*checked, *(full_results[name] for name in sorted(names & full_results.keys()))]

    def _code_tags(self) -> dict[str, str]:
        """Return the code version tag if older code computed some rows.

        The UI then shows the table or partition as older code.
        """
        run, engine, name = self.run, self.io.engine, self.table.name
        if not run.code_version or not engine.catalog.has(name):
            return {}
        parts = parts_of(computed_parts(read_history(engine, name)), run.partitions)
        older = [part for part in parts if part.is_older_than(run.code_version)]
        versions = sorted(set[str]().union(*(part.versions for part in older)) - {UNKNOWN_CODE})
        return {"dagster/code_version": "+".join(versions)} if versions else {}

    def _report_partitions(
        self, result: "dg.MaterializeResult[Any]", rows: Mapping[str, int]
    ) -> None:
        """Report how many rows each partition of the run has.

        A run that skips partitions of its range reports its materializations here. Dagster
        would report all partitions of the range.
        """
        context, key_of_asset = self.context, asset_key(self.table.name)
        counts = {
            key: WriteMetadata(partition_row_count=count).to_metadata()
            for key, count in rows.items()
        }
        if not names_stretches(context.run.tags):
            for key, count in counts.items():
                context.add_asset_metadata(count, key_of_asset, key)
            return
        tags = dict(result.tags or {})
        if result.data_version:
            tags |= {_DATA_VERSION: result.data_version.value, _IS_OF_USER: "true"}
        partitions: Sequence[str | None] = self.keys or [None]
        for partition in partitions:
            metadata = {**(result.metadata or {}), **counts.get(partition or "", {})}
            context.log_event(
                dg.AssetMaterialization(
                    key_of_asset, partition=partition, metadata=metadata, tags=tags
                )
            )


def _quarantine_event(
    io: IcebergIOManager, quarantine: IcebergTable, quarantined: Quarantined
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        asset_key(quarantine.name),
        description=(
            f"{quarantined.rows} rows of this run were rejected; `lakehouse quarantine"
            f" {quarantine.name}` shows them."
        ),
        metadata=quarantined_metadata(io.engine.catalog, quarantine, quarantined),
        tags={"dagster/data_version": str(quarantined.snapshot_id)},
    )
