"""Split of a write's rows by the row rules: counts from one query, samples from another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.rules.audit import TOTAL
from lakehouse.iceberg.rules.failing_row_samples import samples_of
from lakehouse.iceberg.write.kept_rows import Keep
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.tables.quoting import counts
from lakehouse.tables.rule import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REFUSED = "__refused"
OUTSIDE = "__outside"
_EVALUATED = "__looked_at_"


def count_terms(
    prepared: PreparedFrame, rules: Sequence[Rule], outside: str = ""
) -> dict[str, str]:
    """Return aggregates that count the rejected rows and the rows that break each rule.

    :param outside: SQL predicate of the rows in no partition of the table.
    """
    refused = prepared.refused_predicate
    return {
        REFUSED: counts(refused),
        **({OUTSIDE: counts(f"{refused} AND {outside}")} if outside else {}),
        **{rule.name: counts(_breaks(prepared, rule)) for rule in rules},
        **{
            f"{_EVALUATED}{rule.name}": counts(f"NOT {_passed_over(prepared, rule)}")
            for rule in rules
            if rule.cast and rule.on_failure != "quarantine"
        },
    }


@dataclass(frozen=True)
class Split:
    """The cached rows of a write, those that go to the quarantine, and their counts."""

    rows: "DataFrame"
    refused: "DataFrame"
    aggregate_values: Mapping[str, Any]
    """Results of one query over all rows, by name: `count_terms` and further aggregates of the
    write.
    """

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.aggregate_values[TOTAL])

    @property
    def refused_count(self) -> int:
        """Number of rows that go to the quarantine."""
        return int(self.aggregate_values[REFUSED])

    @property
    def outside_count(self) -> int:
        """Number of these that are in no partition of the table, if counted."""
        return int(self.aggregate_values.get(OUTSIDE, 0))

    def evaluated_count(self, rule: Rule) -> int:
        """Return the number of rows that a rule is evaluated on."""
        going_on = self.count - self.refused_count
        default = self.count if rule.on_failure == "quarantine" else going_on
        return int(self.aggregate_values.get(f"{_EVALUATED}{rule.name}", default))


def split_rows(
    prepared: PreparedFrame, rows: "DataFrame", aggregate_values: Mapping[str, Any], keep: Keep
) -> Split:
    """Split counted rows; the rejected ones are cached, so that they and the samples need one
    scan.
    """
    refused = rows.where(prepared.refused_predicate)
    kept = keep(refused) if aggregate_values[REFUSED] else refused
    return Split(rows, kept, aggregate_values)


def evaluated(
    engine: Engine, prepared: PreparedFrame, split: Split, rules: Sequence[Rule]
) -> list[RuleResult]:
    """Return the result of each rule on counted rows, with samples of failing rows.

    Quarantining rules are evaluated on all rows, and others on the accepted rows; see
    `_passed_over`.
    """
    results = [
        RuleResult(rule, split.aggregate_values[rule.name], split.evaluated_count(rule))
        for rule in rules
    ]
    shown = [result.rule for result in results if result.failed_rows and _is_shown(result)]
    # Quarantining rules only need a scan of the rejected rows.
    refusing = [rule for rule in shown if rule.on_failure == "quarantine"]
    others = [rule for rule in shown if rule.on_failure != "quarantine"]
    samples: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for rows, scan_rules in ((split.refused, refusing), (split.rows, others)):
        broken = {rule.name: _breaks(prepared, rule) for rule in scan_rules}
        samples |= samples_of(
            engine, prepared.table, rows, broken, split.aggregate_values, prepared.shown_terms
        )
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]


def _is_shown(result: RuleResult) -> bool:
    """Whether a result needs sample rows: it failed, or its rows are quarantined."""
    return not result.passed or result.rule.on_failure == "quarantine"


def _breaks(prepared: PreparedFrame, rule: Rule) -> str:
    return f"NOT {_passed_over(prepared, rule)} AND {prepared.violation(rule)}"


def _passed_over(prepared: PreparedFrame, rule: Rule) -> str:
    """Return the SQL predicate of the rows that a rule ignores: those that other rules
    quarantine.

    A cast also checks rows that a rule on its own column quarantines: the lost value can be the
    reason for that, and would otherwise not be reported.
    """
    if rule.on_failure == "quarantine":
        return "false"
    if rule.cast is None:
        return prepared.refused_predicate
    other_rules = [
        other
        for other in prepared.table.quarantining_rules
        if rule.columns[0] not in other.columns
    ]
    return prepared.broken(other_rules)
