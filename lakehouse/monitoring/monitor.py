"""One look at all that may be broken; a part of it that cannot be looked at is told of too, and stops no other."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from traceback import extract_tb

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.detectors.failed_checks import look_at_checks
from lakehouse.monitoring.detectors.failed_runs import look_at_runs
from lakehouse.monitoring.detectors.failed_ticks import look_at_ticks
from lakehouse.monitoring.detectors.failure_reasons import said_without_values
from lakehouse.monitoring.detectors.late_data import look_for_late
from lakehouse.monitoring.detectors.quarantined_rows import look_for_quarantined
from lakehouse.monitoring.detectors.recoveries import look_for_mends
from lakehouse.monitoring.detectors.rejected_inbox_files import look_at_rejected
from lakehouse.monitoring.detectors.reported_incidents import look_at_reports
from lakehouse.monitoring.detectors.sources import Lookout
from lakehouse.monitoring.incidents import Broke, Observed


def look(lookout: Lookout, state: AlertState, names: Collection[str]) -> Observed:
    """Return all that was seen.

    :param names: the sensors and schedules that there are.
    """
    open_now = tuple(state.open.values())
    looks: Mapping[str, Callable[[], Observed]] = {
        "checks": lambda: look_at_checks(lookout, state.cursors),
        "quarantines": lambda: look_for_quarantined(lookout, state.cursors, state.open),
        "runs": lambda: look_at_runs(lookout, state.cursors),
        "freshness": lambda: look_for_late(lookout),
        "rejected files": lambda: look_at_rejected(lookout, state.cursors, open_now),
        "sensors and schedules": lambda: look_at_ticks(lookout, names),
        "reports": lambda: look_at_reports(lookout, state.cursors),
    }
    seen = Observed(complete=frozenset({"looking"}))
    for what, one in looks.items():
        seen += _or_blind(lookout, state, what, one)
    news = [fact for fact in seen.facts if isinstance(fact, Broke)]
    mends = _or_blind(lookout, state, "publishes", lambda: Observed(look_for_mends(lookout, open_now, news)))
    return seen + mends


def _or_blind(lookout: Lookout, state: AlertState, what: str, one: Callable[[], Observed]) -> Observed:
    try:
        return one()
    except Exception as error:
        # Whatever the storage, the catalog or the bucket raise: somebody has to know that nobody looks there.
        return Observed((_blind(lookout, state, what, error),))


def _blind(lookout: Lookout, state: AlertState, what: str, error: Exception) -> Broke:
    key = f"looking at {what}"
    known = state.open.get(key)
    frame = extract_tb(error.__traceback__)[-1]
    return Broke(
        key,
        "looking",
        known.broke.at if known else lookout.now,
        "error",
        f"{what} cannot be looked at",
        (
            f"{type(error).__name__}: {said_without_values(error)} ({Path(frame.filename).name}:{frame.lineno})",
            "Until that ends, nobody is told of what breaks there; nothing of it is lost.",
        ),
        commands=("lakehouse doctor",),
        brief=type(error).__name__,
        heals=True,
    )
