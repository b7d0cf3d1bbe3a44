"""One round of all detectors; one that fails is an incident too, and stops no other."""

from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType

from lakehouse.monitoring.detectors.failed_checks import detect_failed_checks
from lakehouse.monitoring.detectors.failed_runs import detect_failed_runs
from lakehouse.monitoring.detectors.failed_ticks import detect_failed_ticks
from lakehouse.monitoring.detectors.failed_upkeep import detect_failed_upkeep
from lakehouse.monitoring.detectors.failure_reasons import describe_without_values
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.detectors.overdue_tables import detect_overdue
from lakehouse.monitoring.detectors.quarantined_rows import detect_quarantined_rows
from lakehouse.monitoring.detectors.recoveries import detect_recoveries
from lakehouse.monitoring.detectors.rejected_inbox_files import detect_rejected_files
from lakehouse.monitoring.detectors.removed_declarations import detect_removed
from lakehouse.monitoring.detectors.reported_incidents import detect_reported
from lakehouse.monitoring.incidents import Firing, Observed

Detector = Callable[[MonitorContext], Observed]
_DETECTORS: Mapping[str, Detector] = {
    "checks": detect_failed_checks,
    "quarantines": detect_quarantined_rows,
    "runs": detect_failed_runs,
    "upkeep": detect_failed_upkeep,
    "freshness": detect_overdue,
    "rejected files": detect_rejected_files,
    "sensors and schedules": detect_failed_ticks,
    "reports": detect_reported,
    "what is no longer declared": detect_removed,
}


def run_detectors(
    context: MonitorContext, further: Mapping[str, Detector] = MappingProxyType({})
) -> Observed:
    """Return all that was observed.

    :param further: detectors of concerns that know of monitoring, by what they monitor.
    """
    observed = Observed(complete=frozenset({"monitor"}))
    for what, detect in {**_DETECTORS, **further}.items():
        observed += _run_detector(context, what, detect)
    news = [fact for fact in observed.facts if isinstance(fact, Firing)]
    open_now = context.state.open.values()

    def detect_published(context: MonitorContext) -> Observed:
        return detect_recoveries(context, open_now, news)

    return observed + _run_detector(context, "publishes", detect_published)


def _run_detector(context: MonitorContext, what: str, detect: Detector) -> Observed:
    try:
        return detect(context)
    except Exception as error:
        # Whatever the storage, the catalog or the bucket raise: somebody has to know that
        # nothing is monitored there.
        return Observed((_detector_failed(context, what, error),))


def _detector_failed(context: MonitorContext, what: str, error: Exception) -> Firing:
    key = f"monitoring {what}"
    known = context.state.open.get(key)
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
