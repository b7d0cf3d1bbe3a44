"""One round of all detectors; one that fails is an incident too, and stops no other."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from traceback import extract_tb

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.detectors.failed_checks import detect_failed_checks
from lakehouse.monitoring.detectors.failed_runs import detect_failed_runs
from lakehouse.monitoring.detectors.failed_ticks import detect_failed_ticks
from lakehouse.monitoring.detectors.failure_reasons import describe_without_values
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.detectors.overdue_tables import detect_overdue
from lakehouse.monitoring.detectors.quarantined_rows import detect_quarantined_rows
from lakehouse.monitoring.detectors.recoveries import detect_recoveries
from lakehouse.monitoring.detectors.rejected_inbox_files import detect_rejected_files
from lakehouse.monitoring.detectors.reported_incidents import detect_reported
from lakehouse.monitoring.incidents import Firing, Observed


def run_detectors(
    context: MonitorContext, state: AlertState, names: Collection[str]
) -> Observed:
    """Return all that was observed.

    :param names: the sensors and schedules that there are.
    """
    open_now = tuple(state.open.values())
    detectors: Mapping[str, Callable[[], Observed]] = {
        "checks": lambda: detect_failed_checks(context, state.cursors),
        "quarantines": lambda: detect_quarantined_rows(context, state.cursors, state.open),
        "runs": lambda: detect_failed_runs(context, state.cursors),
        "freshness": lambda: detect_overdue(context),
        "rejected files": lambda: detect_rejected_files(context, state.cursors, open_now),
        "sensors and schedules": lambda: detect_failed_ticks(context, names),
        "reports": lambda: detect_reported(context, state.cursors),
    }
    observed = Observed(complete=frozenset({"monitor"}))
    for what, detect in detectors.items():
        observed += _run_detector(context, state, what, detect)
    news = [fact for fact in observed.facts if isinstance(fact, Firing)]
    return observed + _run_detector(
        context,
        state,
        "publishes",
        lambda: Observed(detect_recoveries(context, open_now, news)),
    )


def _run_detector(
    context: MonitorContext, state: AlertState, what: str, detect: Callable[[], Observed]
) -> Observed:
    try:
        return detect()
    except Exception as error:
        # Whatever the storage, the catalog or the bucket raise: somebody has to know that
        # nothing is monitored there.
        return Observed((_detector_failed(context, state, what, error),))


def _detector_failed(
    context: MonitorContext, state: AlertState, what: str, error: Exception
) -> Firing:
    key = f"monitoring {what}"
    known = state.open.get(key)
    frame = extract_tb(error.__traceback__)[-1]
    return Firing(
        key,
        "monitor",
        known.firing.at if known else context.now,
        "error",
        f"{what} cannot be monitored",
        (
            (
                f"{type(error).__name__}: {describe_without_values(error)}"
                f" ({Path(frame.filename).name}:{frame.lineno})"
            ),
            "Until that ends, nobody is notified of what fails there; nothing of it is lost.",
        ),
        commands=("lakehouse doctor",),
        brief=type(error).__name__,
        heals=True,
    )
