"""Dagster asset checks of a table: one check for each rule, with the rule's name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg

from lakehouse.iceberg.read.rows_outside_partitions import HAS_PARTITION
from lakehouse.iceberg.rules.refused_share import refused_share
from lakehouse.iceberg.rules.rows import InPartitionsRule
from lakehouse.iceberg.values.write_result import Outcome, Refused, RuleResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.rule import Bounds, Number, Rule
from lakehouse.tables.table_validation import REFUSED_SHARE

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class Evaluated:
    """The state that rule results apply to: the published table or a rejected candidate."""

    what: Literal["main", "candidate"]
    snapshot_id: int | None
    branch: str = ""
    partitions: Sequence[str] = ()

    @classmethod
    def by(cls, outcome: Outcome) -> "Evaluated":
        """Return what the rules of a write were evaluated on."""
        what: Literal["main", "candidate"] = "main"
        snapshot_id, branch = outcome.snapshot_id, ""
        if isinstance(outcome, Refused):
            what, branch = "candidate", outcome.branch
            snapshot_id = outcome.candidate_snapshot_id
        return cls(what, snapshot_id, branch, outcome.partitions)


def check_specs(table: "IcebergTable", implied: Sequence[Rule] = ()) -> list[dg.AssetCheckSpec]:
    """Return the check specs of a table; only blocking rules stop downstream assets.

    :param implied: rules that follow from the table's inputs.
    """
    return [
        dg.AssetCheckSpec(
            name=rule.name,
            asset=asset_key(table.name),
            description=rule.description,
            blocking=rule.can_block,
            metadata={
                "on_failure": rule.on_failure,
                **CheckMetadata(predicate=_predicate(rule)).to_metadata(),
            },
        )
        for rule in (*checked_rules(table), *implied)
    ]


def checked_rules(table: "IcebergTable") -> list[Rule]:
    """Return the declared rules, the quarantine share, and the partition rule."""
    by = table.overwritten_by
    rules = [*table.rules, *([refused_share(table)] if table.quarantining_rules else [])]
    return [*rules, InPartitionsRule.of(by)] if by else rules


def results_of(
    table: "IcebergTable", results: Sequence[RuleResult], implied: Sequence[Rule] = ()
) -> list[RuleResult]:
    """Return the result of each rule; a rule without rows to evaluate passes.

    Dagster warns if a blocking check has no result. The quarantine share is known only for a
    write.
    """
    known = {result.rule.name for result in results} | {REFUSED_SHARE}
    rules = (*checked_rules(table), *implied)
    return [*results, *(RuleResult(rule, 0, 0) for rule in rules if rule.name not in known)]


def check_result(
    table: "IcebergTable", result: RuleResult, evaluated: Evaluated
) -> dg.AssetCheckResult:
    """Return a rule result as a Dagster check result."""
    return dg.AssetCheckResult(
        check_name=result.rule.name,
        asset_key=asset_key(table.name),
        passed=result.passed,
        severity=result_severity(result),
        description=_described(result, evaluated),
        metadata=_metadata(result, evaluated),
    )


def severity(rule: Rule) -> dg.AssetCheckSeverity:
    """Return ERROR for blocking rules, else WARN.

    A high quarantine share and rows that are in no table are also an ERROR.
    """
    is_error = rule.can_block or _warns_as_error(rule)
    return dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN


def result_severity(result: RuleResult) -> dg.AssetCheckSeverity:
    """Return the severity of a result: a rule with two thresholds warns first."""
    if result.level == "warns" and not _is_error(result):
        return dg.AssetCheckSeverity.WARN
    return severity(result.rule)


def _is_error(result: RuleResult) -> bool:
    """Whether a result that does not block is an ERROR."""
    bounds = result.rule.bounds
    is_outside = bounds is None or (
        result.value is not None and not bounds.contains(result.value)
    )
    return _warns_as_error(result.rule) and is_outside


def _warns_as_error(rule: Rule) -> bool:
    return rule.warns_as_error and rule.on_failure == "warn"


def is_of_quarantine(
    table: "IcebergTable | None", evaluation: dg.AssetCheckEvaluation, run_id: str | None
) -> bool:
    """Whether a check reports only the quarantined rows of a run.

    A check without a write evaluates published rows, which are not in the quarantine.
    """
    if (
        table is not None
        and table.quarantining_rules
        and evaluation.check_name == HAS_PARTITION
    ):
        # The rows that it finds without a run are in the quarantine too.
        return True
    if table is None or evaluation.check_name not in {
        rule.name for rule in table.quarantining_rules
    }:
        return False
    published = evaluation.target_materialization_data
    is_error = evaluation.severity == dg.AssetCheckSeverity.ERROR and not evaluation.passed
    return published is not None and published.run_id == run_id and not is_error


def _predicate(rule: Rule) -> str:
    # The identity of a cast is shorter than its SQL.
    return rule.predicate() if rule.cast else rule.sql


def _metadata(result: RuleResult, evaluated: Evaluated) -> dict[str, Any]:
    values = _row_counts(result) if result.rule.bounds is None else _measured_value(result)
    return replace(
        values,
        total_rows=result.total_rows,
        predicate=_predicate(result.rule),
        evaluated=evaluated.what,
        snapshot_id=evaluated.snapshot_id,
        partitions=tuple(evaluated.partitions),
        branch=evaluated.branch or None,
        sample=tuple(result.sample),
    ).to_metadata()


def _row_counts(result: RuleResult) -> CheckMetadata:
    """Return the row counts of a rule; `threshold` is the share above which it fails or warns."""
    rule, fails_above = result.rule, result.rule.fails_above
    has_both = fails_above not in (None, rule.warns_above)
    return CheckMetadata(
        failed_rows=result.failed_rows,
        threshold=rule.warns_above if fails_above is None else fails_above,
        warn_above=rule.warns_above if has_both else None,
    )


def _measured_value(result: RuleResult) -> CheckMetadata:
    """Return the value and the bounds of a rule, which Dagster plots."""
    outer, inner = result.rule.bounds or Bounds(), result.rule.warn_outside or Bounds()
    return CheckMetadata(
        note=result.note or None,
        value=_plotted(result.value),
        low=_float(outer.low),
        high=_float(outer.high),
        warn_low=_float(inner.low),
        warn_high=_float(inner.high),
    )


def _plotted(value: Number | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) and abs(value) < 2**53 else float(value)


def _float(bound: Number | None) -> float | None:
    return None if bound is None else float(bound)


def _described(result: RuleResult, evaluated: Evaluated) -> str:
    where = " of a blocked candidate" if evaluated.what == "candidate" else ""
    if result.rule.bounds is not None:
        return f"{result.rule.description}: {result.summary}{where}."
    if result.failed_rows:
        return (
            f"{result.rule.description}: {result.failed_rows} of {result.total_rows}"
            f" rows{where} break it."
        )
    return (
        result.rule.description
        if result.total_rows
        else f"{result.rule.description}: no row changed."
    )
