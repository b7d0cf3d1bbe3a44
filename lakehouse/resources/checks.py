"""The rules of a table as Dagster checks: one check for each rule, of the same name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg

from lakehouse.iceberg.outcome import Refused, RuleResult
from lakehouse.iceberg.rules.rule import Rule
from lakehouse.iceberg.table import OverwritePartitions
from lakehouse.resources.keys import asset_key

if TYPE_CHECKING:
    from lakehouse.iceberg.outcome import Outcome
    from lakehouse.iceberg.table import IcebergTable


@dataclass(frozen=True)
class Evaluated:
    """What the results of a table's rules speak of: what readers see, or a candidate that was refused."""

    what: Literal["main", "candidate"]
    snapshot_id: int | None
    branch: str = ""
    partitions: Sequence[str] = ()

    @classmethod
    def by(cls, outcome: "Outcome") -> "Evaluated":
        """Return what the rules were evaluated on in a write."""
        if isinstance(outcome, Refused):
            return cls("candidate", outcome.candidate_snapshot_id, outcome.branch, outcome.partitions)
        return cls("main", outcome.snapshot_id, partitions=outcome.partitions)


def check_specs(table: "IcebergTable") -> list[dg.AssetCheckSpec]:
    """Return the checks of a table; only those of blocking rules stop what is downstream."""
    return [
        dg.AssetCheckSpec(
            name=rule.name,
            asset=asset_key(table.name),
            description=rule.description,
            blocking=rule.on_failure == "block",
            metadata={"on_failure": rule.on_failure, "predicate": _predicate(rule)},
        )
        for rule in checked_rules(table)
    ]


def checked_rules(table: "IcebergTable") -> list[Rule]:
    """Return the declared rules, and the one that each write of partitions has to keep."""
    if not isinstance(table.write, OverwritePartitions):
        return list(table.rules)
    said = f"{table.write.by} lies in the run's partitions"
    return [*table.rules, Rule("in_partitions", said, (table.write.by,), "block", violated_by=said)]


def results_of(table: "IcebergTable", found: Sequence[RuleResult]) -> list[RuleResult]:
    """Return what was found of each rule; where there was nothing to evaluate, that no row breaks it.

    Without a result, Dagster would warn that a blocking check no longer holds back what is downstream.
    """
    known = {result.rule.name for result in found}
    return [*found, *(RuleResult(rule, 0, 0) for rule in checked_rules(table) if rule.name not in known)]


def check_result(table: "IcebergTable", result: RuleResult, evaluated: Evaluated) -> dg.AssetCheckResult:
    """Return what a rule found as the result of its check."""
    return dg.AssetCheckResult(
        check_name=result.rule.name,
        asset_key=asset_key(table.name),
        passed=result.passed,
        severity=severity(result.rule),
        description=_described(result, evaluated),
        metadata=_metadata(result, evaluated),
    )


def severity(rule: Rule) -> dg.AssetCheckSeverity:
    """Return ERROR for a rule that blocks; a quarantined row, as one that is warned of, lets the rest go on."""
    return dg.AssetCheckSeverity.ERROR if rule.on_failure == "block" else dg.AssetCheckSeverity.WARN


def sample_table(sample: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a table that Dagster shows; what has no JSON form, and ids beyond 2^53, are text."""
    records = [dg.TableRecord({name: _cell(value) for name, value in row.items()}) for row in sample]
    columns = [dg.TableColumn(name) for name in (sample[0] if sample else {})]
    return dg.MetadataValue.table(records, schema=dg.TableSchema(columns))


def _metadata(result: RuleResult, evaluated: Evaluated) -> dict[str, Any]:
    found: dict[str, Any] = {
        "failed_rows": result.failed_rows,
        "total_rows": result.total_rows,
        "threshold": result.rule.tolerated_fraction,
        "predicate": _predicate(result.rule),
        "evaluated": evaluated.what,
        "snapshot_id": str(evaluated.snapshot_id),
    }
    if evaluated.partitions:
        found["partitions"] = list(evaluated.partitions)
    if evaluated.branch:
        found["branch"] = evaluated.branch
    if result.sample:
        found["sample"] = sample_table(result.sample)
    return found


def _described(result: RuleResult, evaluated: Evaluated) -> str:
    rows = f"{result.failed_rows} of {result.total_rows} rows"
    where = " of a refused candidate" if evaluated.what == "candidate" else ""
    if result.failed_rows:
        return f"{result.rule.description}: {rows}{where} break it."
    return result.rule.description if result.total_rows else f"{result.rule.description}: no row changed."


def _predicate(rule: Rule) -> str:
    return f"unique({', '.join(rule.unique_on)})" if rule.unique_on else rule.predicate()


def _cell(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, (str, bool, float)):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else str(value)
