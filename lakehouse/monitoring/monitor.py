"""One look at all that may be broken; a part of it that cannot be looked at is told of too, and
stops no other.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from traceback import extract_tb

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.detectors.failed_checks import detect_failed_checks
from lakehouse.monitoring.detectors.failed_runs import detect_failed_runs
from lakehouse.monitoring.detectors.failed_ticks import detect_failed_ticks
from lakehouse.monitoring.detectors.failure_reasons import said_without_values
from lakehouse.monitoring.detectors.late_data import look_for_late
from lakehouse.monitoring.detectors.quarantined_rows import look_for_quarantined
from lakehouse.monitoring.detectors.recoveries import look_for_mends
from lakehouse.monitoring.detectors.rejected_inbox_files import detect_rejected_files
from lakehouse.monitoring.detectors.reported_incidents import detect_reported
from lakehouse.monitoring.detectors.sources import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed


def look(context: MonitorContext, state: AlertState, names: Collection[str]) -> Observed:
    """Return all that was seen.

    :param names: the sensors and schedules that there are.
    """
    open_now = tuple(state.open.values())
    looks: Mapping[str, Callable[[], Observed]] = {
        "checks": lambda: detect_failed_checks(context, state.cursors),
        "quarantines": lambda: look_for_quarantined(context, state.cursors, state.open),
        "runs": lambda: detect_failed_runs(context, state.cursors),
        "freshness": lambda: look_for_late(context),
        "rejected files": lambda: detect_rejected_files(context, state.cursors, open_now),
        "sensors and schedules": lambda: detect_failed_ticks(context, names),
        "reports": lambda: detect_reported(context, state.cursors),
    }
    seen = Observed(complete=frozenset({"looking"}))
    for what, one in looks.items():
        seen += _or_blind(context, state, what, one)
    news = [fact for fact in seen.facts if isinstance(fact, Firing)]
    mends = _or_blind(
        context, state, "publishes", lambda: Observed(look_for_mends(context, open_now, news))
    )
    return seen + mends


def _or_blind(
    context: MonitorContext, state: AlertState, what: str, one: Callable[[], Observed]
) -> Observed:
    try:
        return one()
    except Exception as error:
        # Whatever the storage, the catalog or the bucket raise: somebody has to know that
        # nobody looks there.
        return Observed((_blind(context, state, what, error),))


def _blind(context: MonitorContext, state: AlertState, what: str, error: Exception) -> Firing:
    key = f"looking at {what}"
    known = state.open.get(key)
    frame = extract_tb(error.__traceback__)[-1]
    return Firing(
        key,
        "looking",
        known.firing.at if known else context.now,
        "error",
        f"{what} cannot be looked at",
        (
            (
                f"{type(error).__name__}: {said_without_values(error)}"
                f" ({Path(frame.filename).name}:{frame.lineno})"
            ),
            "Until that ends, nobody is told of what breaks there; nothing of it is lost.",
        ),
        commands=("lakehouse doctor",),
        brief=type(error).__name__,
        heals=True,
    )
