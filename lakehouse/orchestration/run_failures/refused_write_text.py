"""A blocked write as a Dagster failure: the rule, the number of rows, and a sample row."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import dagster as dg

from lakehouse.iceberg.metadata.write_result import Refused, RuleResult
from lakehouse.orchestration.asset_checks import Evaluated
from lakehouse.orchestration.metadata_keys import RefusalMetadata
from lakehouse.tables.upkeep import in_days


def refusal(
    outcome: Refused,
    run_id: str,
    metadata: Mapping[str, Any] = MappingProxyType({}),
    evaluated: Evaluated | None = None,
) -> dg.Failure:
    """Return the failure of a blocked write; not retried, since the result would be the same.

    :param metadata: additional metadata of the run.
    :param evaluated: what the rules were evaluated on, and where to query the sample rows.
    """
    reasons = "; ".join(_reason(result, evaluated) for result in outcome.reasons)
    main = (
        f"is as it was, at snapshot {outcome.snapshot_id}"
        if outcome.snapshot_id
        else "is empty, as it was"
    )
    return dg.Failure(
        f"{outcome.table} was not published: {reasons}. The table {main}; {_kept(outcome)}."
        f" Correct the rule, or these rows in {_sources(outcome)}, and run `lakehouse retry"
        f" {outcome.table}`{_publish_all_the_same(outcome, run_id)}.",
        metadata={
            **RefusalMetadata(
                branch=outcome.branch,
                refused_snapshot_id=outcome.candidate_snapshot_id,
                snapshot_id=outcome.snapshot_id,
                failed_rules=", ".join(result.rule.name for result in outcome.reasons),
            ).to_metadata(),
            **metadata,
        },
        allow_retries=False,
    )


def _kept(outcome: Refused) -> str:
    # Rules on metadata or merge rows can fail before anything is written.
    if not outcome.branch:
        return "nothing was written that could be looked at"
    kept_for = in_days(outcome.kept_for)
    return f"the refused rows are kept on its branch {outcome.branch} for {kept_for}"


def _publish_all_the_same(outcome: Refused, run_id: str) -> str:
    if not outcome.branch or not run_id:
        return ""
    return (
        f"; or publish them all the same with `lakehouse publish {outcome.table} --run"
        f" {run_id[:8]} --why …`"
    )


def _sources(outcome: Refused) -> str:
    return (
        " and ".join(sorted({pin.table for pin in outcome.pins.values()}))
        or "what the asset computes"
    )


def _reason(result: RuleResult, evaluated: Evaluated | None) -> str:
    shown = ""
    if result.sample:
        row = json.dumps(dict(result.sample[0]), default=str, ensure_ascii=False)
        shown = f", such as {row}"
    in_clear = evaluated.show(result) if evaluated else None
    shown += f", shown in clear by `{in_clear}`" if in_clear else ""
    broken = "is broken by" if result.rule.bounds is None else "does not hold: found"
    return (
        f"rule {result.rule.name} ({result.rule.description}) {broken} {result.summary}{shown}"
    )
