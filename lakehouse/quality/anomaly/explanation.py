"""A number, and what was to be expected of it, in words that a person can check against a
calendar.
"""

from statistics import median

from lakehouse.quality.anomaly.metric_series import Evaluation, Kind

_SHOWN = 8
"""Days that are summed up: of one weekday, those of two months."""


def explained(found: Evaluation, kind: Kind, unit: str) -> str:
    """Return the value, the past that it is compared with, and the bound that it is beyond or
    within.

    :param unit: what is counted, such as `rows`; fractions are shown in percent.
    """
    shown = found.past[-_SHOWN:]
    values = [point.value for point in shown]
    days = f"{found.point.day:%A}s" if found.same_weekday else "days with a value"
    return (
        f"{_number(found.point.value, kind)}{_of(unit)} on {found.point.day:%A}"
        f" {found.point.day.day} {found.point.day:%B %Y}; the last {len(shown)} {days} had"
        f" {_number(min(values), kind)} to {_number(max(values), kind)} (median"
        f" {_number(median(values), kind)}); expected {_bounds(found, kind)}."
    )


def _bounds(found: Evaluation, kind: Kind) -> str:
    if found.is_low:
        return f"at least {_number(found.least, kind)}"
    if found.is_high:
        return f"at most {_number(found.most, kind)}"
    return f"{_number(found.least, kind)} to {_number(found.most, kind)}"


def _of(unit: str) -> str:
    return f" {unit}" if unit else ""


def _number(value: float, kind: Kind) -> str:
    if kind.is_fraction:
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}"
