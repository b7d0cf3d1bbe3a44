"""Describe a value and its expected range so that a person can verify it with a calendar."""

from statistics import median

from lakehouse.quality.anomaly.metric_series import Evaluation, Kind

_SHOWN = 8
"""The number of days summarized; for one weekday, two months."""


def explain(evaluation: Evaluation, kind: Kind, unit: str) -> str:
    """Return the value, the history that it is compared with, and the violated or satisfied
    bound.

    :param unit: the counted unit, such as `rows`; fractions are shown in percent.
    """
    shown = evaluation.past[-_SHOWN:]
    values = [point.value for point in shown]
    newest = evaluation.point
    days = f"{newest.day:%A}s" if evaluation.same_weekday else "days with a value"
    unit_text = f" {unit}" if unit else ""
    return (
        f"{_number(newest.value, kind)}{unit_text} on {newest.day:%A}"
        f" {newest.day.day} {newest.day:%B %Y}; the last {len(shown)} {days} had"
        f" {_number(min(values), kind)} to {_number(max(values), kind)} (median"
        f" {_number(median(values), kind)}); expected {_bounds(evaluation, kind)}."
    )


def _bounds(evaluation: Evaluation, kind: Kind) -> str:
    least, most = _number(evaluation.least, kind), _number(evaluation.most, kind)
    if evaluation.is_low:
        return f"at least {least}"
    if evaluation.is_high:
        return f"at most {most}"
    return f"{least} to {most}"


def _number(value: float, kind: Kind) -> str:
    return f"{100 * value:.2f} %" if kind.is_fraction else f"{value:,.0f}"
