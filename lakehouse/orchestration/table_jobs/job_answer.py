"""What a job answers: the outcome of its write, or the error that it ended with; as JSON, and
back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from lakehouse import errors
from lakehouse.errors import FileRejected, JobFailed, LakehouseError
from lakehouse.iceberg.metadata.write_result import (
    Outcome,
    Pin,
    Published,
    Quarantined,
    Refused,
    RuleResult,
    Scanned,
    Unchanged,
)
from lakehouse.tables.bounds import Bounds, Number
from lakehouse.tables.rule import Rule

OUTCOME, ERROR, BEGUN = "lakehouse/outcome", "lakehouse/error", "lakehouse/begun"
ALL_ROWS = "lakehouse/all_rows"
"""Keys of the messages in which a job answers."""
_KINDS: Mapping[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Published, Refused, Unchanged)
}
_BOUNDS = ("bounds", "warn_outside")
_OF_A_WRITE = ("description", "on_failure", "warn_above", "fail_above")
"""What a write may have other than declared, such as the share that its rows may be refused."""


def outcome_message(outcome: Outcome) -> dict[str, Any]:
    """Return the message that tells an outcome."""
    plain = asdict(replace(outcome, results=()))
    if isinstance(outcome, Refused):
        plain["kept_for"] = outcome.kept_for.total_seconds()
    results = [_result_to_json(result) for result in outcome.results]
    return {OUTCOME: {**plain, "results": results, "kind": type(outcome).__name__}}


def error_message(error: LakehouseError) -> dict[str, Any]:
    """Return the message that tells why a job failed."""
    kind = type(error).__name__
    text = str(error.args[0]) if error.args else kind
    return {ERROR: {"kind": kind, "text": text, "next_step": error.next_step}}


def begun_message(table: str, write_id: str) -> dict[str, Any]:
    """Return the message that tells that a write of a table begins."""
    return {BEGUN: {"table": table, "write_id": write_id}}


def all_rows_message(results: Iterable[RuleResult]) -> dict[str, Any]:
    """Return the message that tells what all rows of a table tell of some of its rules."""
    return {ALL_ROWS: {"results": [_result_to_json(result) for result in results]}}


def begun_writes(messages: Iterable[Any]) -> list[tuple[str, str]]:
    """Return the writes that a job told of, each by its table and its id."""
    return [
        (message[BEGUN]["table"], message[BEGUN]["write_id"])
        for message in messages
        if isinstance(message, dict) and BEGUN in message
    ]


def answered_outcome(messages: Iterable[Any], rules: Iterable[Rule]) -> Outcome | None:
    """Return the outcome that a job told; None where it told none.

    :param rules: those whose results it may tell.
    """
    told = _last(messages, OUTCOME)
    return _outcome(told, {rule.name: rule for rule in rules}) if told else None


def answered_all_rows(messages: Iterable[Any], rules: Iterable[Rule]) -> tuple[RuleResult, ...]:
    """Return what a job told of all rows of its table; nothing where it told none.

    :param rules: those whose results it may tell.
    """
    told = _last(messages, ALL_ROWS)
    by_name = {rule.name: rule for rule in rules}
    return _results(told["results"], by_name) if told else ()


def answered_error(messages: Iterable[Any]) -> LakehouseError | None:
    """Return the error that a job told; None where it told none."""
    told = _last(messages, ERROR)
    if told is None:
        return None
    kind = getattr(errors, told["kind"], JobFailed)
    if kind is FileRejected:
        return LakehouseError(told["text"], next_step=told["next_step"])
    error: LakehouseError = kind(told["text"], next_step=told["next_step"])
    return error


def _last(messages: Iterable[Any], key: str) -> dict[str, Any] | None:
    found = [
        message[key] for message in messages if isinstance(message, dict) and key in message
    ]
    return found[-1] if found else None


def _outcome(told: Mapping[str, Any], rules: Mapping[str, Rule]) -> Outcome:
    fields = dict(told)
    kind = _KINDS[fields.pop("kind")]
    fields["results"] = _results(told["results"], rules)
    fields["pins"] = {name: _pin(pin) for name, pin in told["pins"].items()}
    fields["partitions"] = tuple(told["partitions"])
    if told["quarantined"]:
        fields["quarantined"] = Quarantined(**told["quarantined"])
    if kind is Refused:
        fields["kept_for"] = timedelta(seconds=told["kept_for"])
    return kind(**fields)


def _pin(told: Mapping[str, Any]) -> Pin:
    scanned = Scanned(**told["scanned"]) if told["scanned"] else None
    return Pin(**{**told, "scanned": scanned})


def _result_to_json(result: RuleResult) -> dict[str, Any]:
    rule = result.rule
    said: dict[str, Any] = {name: getattr(rule, name) for name in ("name", *_OF_A_WRITE)}
    for name in _BOUNDS:
        bounds: Bounds | None = getattr(rule, name)
        said[name] = (
            [_number_to_json(bounds.low), _number_to_json(bounds.high)] if bounds else None
        )
    return {
        "rule": said,
        "failed_rows": result.failed_rows,
        "total_rows": result.total_rows,
        "sample": [dict(row) for row in result.sample],
        "value": _number_to_json(result.value),
        "note": result.note,
    }


def _results(
    told: Iterable[Mapping[str, Any]], rules: Mapping[str, Rule]
) -> tuple[RuleResult, ...]:
    """Return results; those of rules that are not known here are left out, so that what the job
    published is never lost for one.
    """
    known = (result for result in told if result["rule"]["name"] in rules)
    return tuple(_result(result, rules) for result in known)


def _result(told: Mapping[str, Any], rules: Mapping[str, Rule]) -> RuleResult:
    said = dict(told["rule"])
    rule = rules[said.pop("name")]
    for name in _BOUNDS:
        low_and_high = said[name]
        said[name] = Bounds(*map(_number, low_and_high)) if low_and_high else None
    return RuleResult(
        replace(rule, **said),
        told["failed_rows"],
        told["total_rows"],
        tuple(told["sample"]),
        _number(told["value"]),
        told["note"],
    )


def _number_to_json(value: Number | None) -> Any:
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def _number(told: Any) -> Number | None:
    value: Number | None = Decimal(told["decimal"]) if isinstance(told, dict) else told
    return value
