"""Messages of a job as JSON: the outcome of its write, or the error."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from lakehouse import errors
from lakehouse.errors import FileRejected, JobFailed, LakehouseError
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Pin,
    Published,
    Quarantined,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.tables.rule import Bounds, Number, Rule

OUTCOME, ERROR = "lakehouse/outcome", "lakehouse/error"
"""Keys of the job's messages."""
_KINDS: Mapping[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Published, Refused, Unchanged)
}
_BOUNDS = ("bounds", "warn_outside")
_OF_A_WRITE = ("description", "on_failure", "warn_above", "fail_above")
"""Rule fields that a write can override, such as the limit of the quarantine share."""


def outcome_message(outcome: Outcome) -> dict[str, Any]:
    """Return the message with an outcome."""
    plain = asdict(replace(outcome, results=()))
    if isinstance(outcome, Refused):
        plain["kept_for"] = outcome.kept_for.total_seconds()
    results = [_result_to_json(result) for result in outcome.results]
    return {OUTCOME: {**plain, "results": results, "kind": type(outcome).__name__}}


def error_message(error: LakehouseError) -> dict[str, Any]:
    """Return the message with the error of a job."""
    kind = type(error).__name__
    text = str(error.args[0]) if error.args else kind
    return {ERROR: {"kind": kind, "text": text, "next_step": error.next_step}}


def answered_outcome(messages: Iterable[Any], rules: Iterable[Rule]) -> Outcome | None:
    """Return the outcome in the messages of a job; None without one.

    :param rules: rules whose results it can contain.
    """
    content = _last(messages, OUTCOME)
    return _outcome(content, {rule.name: rule for rule in rules}) if content else None


def answered_error(messages: Iterable[Any]) -> LakehouseError | None:
    """Return the error in the messages of a job; None without one."""
    content = _last(messages, ERROR)
    if content is None:
        return None
    kind = getattr(errors, content["kind"], JobFailed)
    if kind is FileRejected:
        return LakehouseError(content["text"], next_step=content["next_step"])
    error: LakehouseError = kind(content["text"], next_step=content["next_step"])
    return error


def _last(messages: Iterable[Any], key: str) -> dict[str, Any] | None:
    found = [
        message[key] for message in messages if isinstance(message, dict) and key in message
    ]
    return found[-1] if found else None


def _outcome(content: Mapping[str, Any], rules: Mapping[str, Rule]) -> Outcome:
    fields = dict(content)
    kind = _KINDS[fields.pop("kind")]
    fields["results"] = _results(content["results"], rules)
    fields["pins"] = {name: Pin(**pin) for name, pin in content["pins"].items()}
    fields["partitions"] = tuple(content["partitions"])
    if content["quarantined"]:
        fields["quarantined"] = Quarantined(**content["quarantined"])
    if kind is Refused:
        fields["kept_for"] = timedelta(seconds=content["kept_for"])
    return kind(**fields)


def _result_to_json(result: RuleResult) -> dict[str, Any]:
    rule = result.rule
    rule_fields: dict[str, Any] = {name: getattr(rule, name) for name in ("name", *_OF_A_WRITE)}
    for name in _BOUNDS:
        bounds: Bounds | None = getattr(rule, name)
        rule_fields[name] = (
            [_number_to_json(bounds.low), _number_to_json(bounds.high)] if bounds else None
        )
    return {
        "rule": rule_fields,
        "failed_rows": result.failed_rows,
        "total_rows": result.total_rows,
        "sample": [dict(row) for row in result.sample],
        "value": _number_to_json(result.value),
        "note": result.note,
    }


def _results(
    content: Iterable[Mapping[str, Any]], rules: Mapping[str, Rule]
) -> tuple[RuleResult, ...]:
    """Return rule results, without those of unknown rules: keep what the job published."""
    known = (result for result in content if result["rule"]["name"] in rules)
    return tuple(_result(result, rules) for result in known)


def _result(content: Mapping[str, Any], rules: Mapping[str, Rule]) -> RuleResult:
    rule_fields = dict(content["rule"])
    rule = rules[rule_fields.pop("name")]
    for name in _BOUNDS:
        low_and_high = rule_fields[name]
        rule_fields[name] = Bounds(*map(_number, low_and_high)) if low_and_high else None
    return RuleResult(
        replace(rule, **rule_fields),
        content["failed_rows"],
        content["total_rows"],
        tuple(content["sample"]),
        _number(content["value"]),
        content["note"],
    )


def _number_to_json(value: Number | None) -> Any:
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def _number(content: Any) -> Number | None:
    value: Number | None = Decimal(content["decimal"]) if isinstance(content, dict) else content
    return value
