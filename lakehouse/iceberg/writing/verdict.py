"""What a table's row rules say of the rows that a write was given: counted in one query, samples in one more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.outcome import RuleResult
from lakehouse.iceberg.quoting import counts
from lakehouse.iceberg.rules.rule import Rule
from lakehouse.iceberg.writing.audit import TOTAL, samples_of
from lakehouse.iceberg.writing.candidate import Candidate
from lakehouse.iceberg.writing.stage import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REFUSED = "__refused"


def counted(candidate: Candidate, rules: Sequence[Rule]) -> dict[str, str]:
    """Return the aggregates that count, by name, the refused rows and those that break each rule."""
    return {
        REFUSED: counts(candidate.refused_predicate),
        **{rule.name: counts(_breaks(candidate, rule)) for rule in rules},
    }


def refused_rows(candidate: Candidate, rows: "DataFrame", found: Mapping[str, Any]) -> "DataFrame":
    """Return the rows that go to the quarantine; kept, so that it and the samples need one look at all rows."""
    refused = rows.where(candidate.refused_predicate)
    return refused.localCheckpoint(eager=False) if found[REFUSED] else refused


def judged(
    attempt: Attempt,
    candidate: Candidate,
    rows: "DataFrame",
    refused: "DataFrame",
    rules: Sequence[Rule],
    found: Mapping[str, Any],
) -> list[RuleResult]:
    """Return what each rule found, in rows that were counted, with samples of those that break it.

    A rule that quarantines looks at all rows, and the others at those that go on.

    :param refused: those of the rows that go to the quarantine.
    """
    looked_at = {True: found[TOTAL], False: found[TOTAL] - found[REFUSED]}
    results = [RuleResult(rule, found[rule.name], looked_at[rule.on_failure == "quarantine"]) for rule in rules]
    shown = [result.rule for result in results if result.failed_rows and _is_shown(result)]
    broken = {rule.name: _breaks(candidate, rule) for rule in shown}
    shown_rows = refused if all(rule.on_failure == "quarantine" for rule in shown) else rows
    samples = samples_of(attempt.engine, attempt.table, shown_rows, broken, found, candidate.shown_terms(rows))
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]


def _is_shown(result: RuleResult) -> bool:
    """Whether rows are shown that break a rule: those that do not go on are, however few."""
    return not result.passed or result.rule.on_failure == "quarantine"


def _breaks(candidate: Candidate, rule: Rule) -> str:
    broken = candidate.violation(rule)
    return broken if rule.on_failure == "quarantine" else f"NOT {candidate.refused_predicate} AND {broken}"
