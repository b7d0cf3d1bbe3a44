"""Result of the check on the share of rejected rows, from existing counts."""

from collections.abc import Callable, Mapping, Sequence

from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.rules.refused_share import (
    HALF,
    RefusedShareRule,
    refused_share,
    without_blocking,
)
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.iceberg.write.split_rows import Split
from lakehouse.tables.quoting import counts
from lakehouse.tables.table import IcebergTable

_FILE = "_source_file"


def evaluate_refusals(
    prepared: PreparedFrame,
    split: Split,
    read_target: Callable[[], History | None] | None = None,
) -> list[RuleResult]:
    """Return the share of rejected rows and its level; empty without a quarantine.

    One bad file does not block others: a blocking share becomes an error if any file is within
    the limit.

    :param read_target: reads the history of the target, None if it does not exist; only called
        if this can be the first write. Without it, this is not the first write.
    """
    table = prepared.table
    if not table.quarantining_rules:
        return []
    by_rule = {
        rule.name: split.aggregate_values[rule.name] for rule in table.quarantining_rules
    }
    share = split.refused_count / split.count if split.count else 0.0
    is_first = share > HALF and read_target is not None and _is_first(read_target())
    rule = refused_share(table, split.count, is_first=is_first)
    if rule.level_of_value(share) == "fails" and _has_good_file(prepared, split, rule):
        rule = without_blocking(rule)
    return [_result(rule, split.count, split.refused_count, by_rule)]


def none_refused(table: IcebergTable, rows: int) -> list[RuleResult]:
    """Return the result for rows of which none was rejected; empty without a quarantine."""
    return (
        [_result(refused_share(table, rows), rows, 0, {})] if table.quarantining_rules else []
    )


def _result(
    rule: RefusedShareRule, rows: int, refused: int, by_rule: Mapping[str, int]
) -> RuleResult:
    if not rows:
        return RuleResult(rule, 0, 0)
    note = f"{refused:,} of {rows:,} rows refused"
    broken = broken_rules(by_rule)
    return RuleResult(
        rule, 0, rows, value=refused / rows, note=f"{note}: {broken}" if broken else note
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
    """Whether a file's share of rejected rows is within the limit; only evaluated before a
    block.
    """
    if _FILE not in split.rows.columns:
        return False
    each = split.rows.where(f"{_FILE} IS NOT NULL").groupBy(_FILE)
    from pyspark.sql.functions import expr

    file_counts = each.agg(
        expr("count(1)").alias("rows"),
        expr(counts(prepared.refused_predicate)).alias("refused"),
    )
    good = file_counts.where(f"refused < rows AND refused <= rows * {rule.tolerated_share!r}D")
    return bool(good.limit(1).count())
