"""The Dagster check `healthy` of each table, from its health rules."""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from lakehouse.errors import TableNotFound, TableUnreadable
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.evaluation import evaluate_snapshot
from lakehouse.iceberg.rules.health import DEFAULT_RULES, HealthRule
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.orchestration.asset_checks import result_severity
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import EVALUATED_ALONE
from lakehouse.tables.table import IcebergTable

HEALTHY = "healthy"
"""Name of the check."""


def health_checks(declared: Mapping[str, IcebergTable]) -> list[dg.AssetChecksDefinition]:
    """Create the check of each declared table; needs no Spark.

    Sensors and commands run the checks separately, so that writes do not wait for them. Each is
    a separate step, so that an error in one table does not affect another.
    """
    return [_health_check(table) for table in declared.values()]


def _health_check(table: IcebergTable) -> dg.AssetChecksDefinition:
    spec = dg.AssetCheckSpec(
        HEALTHY,
        asset=asset_key(table.name),
        description=(
            "Small files, delete files, snapshots, manifests and branches are as few as upkeep"
            " leaves them."
        ),
        blocking=False,
        metadata=EVALUATED_ALONE,
    )

    @dg.multi_asset_check(
        name=f"{table.name.replace('.', '__')}__{HEALTHY}",
        specs=[spec],
        can_subset=True,
        required_resource_keys={"engine"},
    )
    def healthy(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        try:
            results = evaluate_health(context.resources.engine, table)
        except (TableUnreadable, TableNotFound) as error:
            context.log.warning(f"The health of {table.name} was not evaluated: {error}")
            return
        yield health_result(table, results)

    return healthy


def evaluate_health(engine: Engine, table: IcebergTable) -> list[RuleResult]:
    """Evaluate the default health rules; rules that the table declares have their own checks."""
    declared = {type(rule) for rule in table.rules}
    rules = [rule for rule in DEFAULT_RULES if type(rule) not in declared]
    history = read_history(engine, table.name)
    return evaluate_snapshot(EvaluatedSnapshot(engine, table, history, history.main), rules)


def health_result(table: IcebergTable, results: Sequence[RuleResult]) -> dg.AssetCheckResult:
    """Return the check result of a table: failed rules, and each value as a plotted number."""
    failed = [result for result in results if not result.passed]
    is_error = any(result_severity(result) == dg.AssetCheckSeverity.ERROR for result in failed)
    messages = []
    for result in failed:
        rule = result.rule
        assert isinstance(rule, HealthRule)
        bounds = rule.warn_outside or rule.bounds
        messages.append(f"{rule.value_name}: {result.summary}, expected {bounds}.")
    values = {result.rule.name: result.value for result in results if result.value is not None}
    return dg.AssetCheckResult(
        check_name=HEALTHY,
        asset_key=asset_key(table.name),
        passed=not failed,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=" ".join(messages) or "Upkeep has nothing left to clean up.",
        metadata={name: float(value) for name, value in values.items()},
    )
