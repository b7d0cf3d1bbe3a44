"""What a table's row rules say of the rows that a write was given: counted in one query,
samples in one more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import FEW
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
_LOOKED_AT = "__looked_at_"


def counted(
    prepared: PreparedFrame, rules: Sequence[Rule], outside: str = ""
) -> dict[str, str]:
    """Return the aggregates that count, by name, the refused rows and those that break each
    rule.

    :param outside: the SQL predicate of the rows that belong to no partition of the table.
    """
    refused = prepared.refused_predicate
    return {
        REFUSED: counts(refused),
        **({OUTSIDE: counts(f"{refused} AND {outside}")} if outside else {}),
        **{rule.name: counts(_breaks(prepared, rule)) for rule in rules},
        **{
            f"{_LOOKED_AT}{rule.name}": counts(f"NOT {_passed_over(prepared, rule)}")
            for rule in rules
            if rule.cast and rule.on_failure != "quarantine"
        },
    }


@dataclass(frozen=True)
class Split:
    """The rows that a write was given, kept, and those of them that go to the quarantine; with
    what was counted.
    """

    rows: "DataFrame"
    refused: "DataFrame"
    counted_values: Mapping[str, Any]
    """By name, what one query counted of all rows: those of `counted`, and what else the write
    asked.
    """

    @property
    def count(self) -> int:
        """How many rows were given."""
        return int(self.counted_values[TOTAL])

    @property
    def refused_count(self) -> int:
        """How many of them go to the quarantine."""
        return int(self.counted_values[REFUSED])

    @property
    def outside_count(self) -> int:
        """How many of these belong to no partition of the table, where that was counted."""
        return int(self.counted_values.get(OUTSIDE, 0))

    def looked_at(self, rule: Rule) -> int:
        """Return how many of them a rule looks at."""
        going_on = self.count - self.refused_count
        default = self.count if rule.on_failure == "quarantine" else going_on
        return int(self.counted_values.get(f"{_LOOKED_AT}{rule.name}", default))


def split_rows(
    prepared: PreparedFrame, rows: "DataFrame", counted_values: Mapping[str, Any], keep: Keep
) -> Split:
    """Split rows that were counted; the refused are kept, so that they and the samples need one
    look at all rows.
    """
    refused = rows.where(prepared.refused_predicate)
    kept = keep(refused) if counted_values[REFUSED] else refused
    return Split(rows, kept, counted_values)


def evaluated(
    engine: Engine, prepared: PreparedFrame, split: Split, rules: Sequence[Rule]
) -> list[RuleResult]:
    """Return what each rule found, in rows that were counted, with samples of those that break
    it.

    A rule that quarantines looks at all rows, and the others at those that go on; see
    `_passed_over`.
    """
    results = [
        RuleResult(rule, split.counted_values[rule.name], split.looked_at(rule))
        for rule in rules
    ]
    shown = [result.rule for result in results if result.failed_rows and _is_shown(result)]
    samples: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for rows, looked_for in _looks(split, shown):
        broken = {rule.name: _breaks(prepared, rule) for rule in looked_for}
        samples |= samples_of(
            engine, prepared.table, rows, broken, split.counted_values, prepared.shown_terms
        )
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]


def _looks(split: Split, shown: Sequence[Rule]) -> "list[tuple[DataFrame, list[Rule]]]":
    """Return the rows in which to look for samples of some rules: few all at once, of many the
    refused by themselves.

    What is rare is looked for in all rows, and most often it is the refused that some rule has
    few of.
    """
    refusing = [rule for rule in shown if rule.on_failure == "quarantine"]
    others = [rule for rule in shown if rule.on_failure != "quarantine"]
    if others and split.count < FEW:
        return [(split.rows, list(shown))]
    return [(split.refused, refusing), (split.rows, others)]


def _is_shown(result: RuleResult) -> bool:
    """Whether rows are shown that break a rule: those that do not go on are, however few."""
    return not result.passed or result.rule.on_failure == "quarantine"


def _breaks(prepared: PreparedFrame, rule: Rule) -> str:
    return f"NOT {_passed_over(prepared, rule)} AND {prepared.violation(rule)}"


def _passed_over(prepared: PreparedFrame, rule: Rule) -> str:
    """Return the SQL predicate of the rows that a rule does not look at: where it takes none out
    itself, those that go to the quarantine.

    A cast looks at those too that a rule on its own column takes out: for what was lost by it a
    row may lack a value, and nothing else would say that one was there.
    """
    if rule.on_failure == "quarantine":
        return "false"
    if rule.cast is None:
        return prepared.refused_predicate
    others = [
        other
        for other in prepared.table.quarantining_rules
        if rule.columns[0] not in other.columns
    ]
    return prepared.broken(others)
