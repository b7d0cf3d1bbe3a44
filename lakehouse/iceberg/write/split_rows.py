"""Split of a write's rows by the row rules: counts from one query, samples from another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.rules.audit import TOTAL
from lakehouse.iceberg.rules.failing_row_samples import samples_of
from lakehouse.iceberg.rules.refused_share import (
    HALF,
    RefusedShareRule,
    refused_share,
    without_blocking,
)
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.iceberg.write.kept_rows import Keep
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.tables.quoting import counts
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


REJECTED = "__rejected"
OUTSIDE = "__outside"
_EVALUATED = "__looked_at_"


def count_terms(
    prepared: PreparedFrame, rules: Sequence[Rule], outside: str = ""
) -> dict[str, str]:
    """Return aggregates that count the rejected rows and the rows that break each rule.

    :param outside: SQL predicate of the rows in no partition of the table.
    """
    rejected = prepared.rejected_predicate
    return {
        REJECTED: counts(rejected),
        **({OUTSIDE: counts(f"{rejected} AND {outside}")} if outside else {}),
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
    rejected: "DataFrame"
    aggregate_values: Mapping[str, Any]
    """Results of one query over all rows, by name: `count_terms` and the write's own."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.aggregate_values[TOTAL])

    @property
    def rejected_count(self) -> int:
        """Number of rows that go to the quarantine."""
        return int(self.aggregate_values[REJECTED])

    @property
    def outside_count(self) -> int:
        """Number of these that are in no partition of the table, if counted."""
        return int(self.aggregate_values.get(OUTSIDE, 0))

    def evaluated_count(self, rule: Rule) -> int:
        """Return the number of rows that a rule is evaluated on."""
        going_on = self.count - self.rejected_count
        default = self.count if rule.on_failure == "quarantine" else going_on
        return int(self.aggregate_values.get(f"{_EVALUATED}{rule.name}", default))


def split_rows(
    prepared: PreparedFrame, rows: "DataFrame", aggregate_values: Mapping[str, Any], keep: Keep
) -> Split:
    """Split counted rows; the rejected ones are cached for the samples."""
    rejected = rows.where(prepared.rejected_predicate)
    kept = keep(rejected) if aggregate_values[REJECTED] else rejected
    return Split(rows, kept, aggregate_values)


def evaluated(
    engine: Engine, prepared: PreparedFrame, split: Split, rules: Sequence[Rule]
) -> list[RuleResult]:
    """Return the result of each rule on counted rows, with samples of failing rows.

    Only quarantining rules are evaluated on all rows; see `_passed_over`.
    """
    results = [
        RuleResult(rule, split.aggregate_values[rule.name], split.evaluated_count(rule))
        for rule in rules
    ]
    failing = [result for result in results if result.failed_rows]
    # Quarantining rules only need a scan of the rejected rows.
    quarantining = [found.rule for found in failing if found.rule.on_failure == "quarantine"]
    failed = [found.rule for found in failing if not found.passed]
    others = [rule for rule in failed if rule.on_failure != "quarantine"]
    samples: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for rows, scan_rules in ((split.rejected, quarantining), (split.rows, others)):
        broken = {rule.name: _breaks(prepared, rule) for rule in scan_rules}
        samples |= samples_of(
            engine, prepared.table, rows, broken, split.aggregate_values, prepared.shown_terms
        )
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]


def _breaks(prepared: PreparedFrame, rule: Rule) -> str:
    return f"NOT {_passed_over(prepared, rule)} AND {prepared.violation(rule)}"


def _passed_over(prepared: PreparedFrame, rule: Rule) -> str:
    """Return SQL of the rows that a rule ignores, since other rules quarantine them.

    A cast still checks rows that a rule on its column quarantines, perhaps for the lost value.
    """
    if rule.on_failure == "quarantine":
        return "false"
    if rule.cast is None:
        return prepared.rejected_predicate
    other_rules = [
        other
        for other in prepared.table.quarantining_rules
        if rule.columns[0] not in other.columns
    ]
    return prepared.broken(other_rules)


_FILE = "_source_file"


def evaluate_rejections(
    prepared: PreparedFrame,
    split: Split,
    read_target: Callable[[], History | None] | None = None,
) -> list[RuleResult]:
    """Return the share of rejected rows and its level; empty without a quarantine.

    A blocking share becomes an error if any file is within the limit: one bad file blocks no other.

    :param read_target: reads the history of the target, None if there is none, to see whether this
        is the first write; without it, it is not.
    """
    table = prepared.table
    if not table.quarantining_rules:
        return []
    by_rule = {
        rule.name: split.aggregate_values[rule.name] for rule in table.quarantining_rules
    }
    share = split.rejected_count / split.count if split.count else 0.0
    is_first = share > HALF and read_target is not None and _is_first(read_target())
    rule = refused_share(table, split.count, is_first=is_first)
    if rule.level_of_value(share) == "fails" and _has_good_file(prepared, split, rule):
        rule = without_blocking(rule)
    return [_result(rule, split.count, split.rejected_count, by_rule)]


def none_rejected(table: IcebergTable, rows: int) -> list[RuleResult]:
    """Return the result for rows of which none was rejected; empty without a quarantine."""
    return (
        [_result(refused_share(table, rows), rows, 0, {})] if table.quarantining_rules else []
    )


def _result(
    rule: RefusedShareRule, rows: int, rejected: int, by_rule: Mapping[str, int]
) -> RuleResult:
    if not rows:
        return RuleResult(rule, 0, 0)
    note = f"{rejected:,} of {rows:,} rows rejected"
    broken = broken_rules(by_rule)
    return RuleResult(
        rule, 0, rows, value=rejected / rows, note=f"{note}: {broken}" if broken else note
    )


def broken_rules(by_rule: Mapping[str, int]) -> str:
    """Format the broken rules with their row counts, in descending order."""
    broken: Sequence[tuple[str, int]] = sorted(
        by_rule.items(), key=lambda item: (-item[1], item[0])
    )
    return ", ".join(f"{name} {rows:,}" for name, rows in broken if rows)


def _is_first(history: History | None) -> bool:
    """Whether nothing was published yet: a new table only has evolution commits."""
    return history is None or all(
        snapshot.commit is not None and snapshot.commit.kind == "evolution"
        for snapshot in history.line
    )


def _has_good_file(prepared: PreparedFrame, split: Split, rule: RefusedShareRule) -> bool:
    """Whether a file's share of rejected rows is within the limit."""
    if _FILE not in split.rows.columns:
        return False
    each = split.rows.where(f"{_FILE} IS NOT NULL").groupBy(_FILE)
    from pyspark.sql.functions import expr

    file_counts = each.agg(
        expr("count(1)").alias("rows"),
        expr(counts(prepared.rejected_predicate)).alias("rejected"),
    )
    good = file_counts.where(
        f"rejected < rows AND rejected <= rows * {rule.tolerated_share!r}D"
    )
    return bool(good.limit(1).count())
