"""What other parts report as broken, such as a server that died, is told, and when it is
mended.
"""

from datetime import timedelta

from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse_tests.monitoring.watch import Watch

DIED = Report(
    "spark server", "Spark died", ("Killed by signal 9; it is started again at 10:00:05 UTC.",)
)


def test_what_is_reported_is_told_once_and_when_it_is_mended(watch: Watch) -> None:
    report_firing(watch.settings, DIED)
    (alert,) = watch.look()
    assert (alert.title, alert.severity, alert.lines[0]) == (
        "Spark died",
        "error",
        DIED.lines[0],
    )
    report_firing(watch.settings, DIED)
    assert watch.says() == []
    report_resolved(watch.settings, DIED.key, "Spark was started again.")
    (over,) = watch.look()
    assert (over.title, over.lines[0]) == ("Resolved: Spark died", "Spark was started again.")
    assert watch.says() == []


def test_what_broke_and_was_mended_between_two_looks_is_told_in_order(watch: Watch) -> None:
    report_firing(watch.settings, DIED)
    report_resolved(watch.settings, DIED.key, "Spark was started again.")
    assert watch.says() == ["Spark died", "Resolved: Spark died"]
    assert watch.says(later=timedelta(days=1)) == []


def test_what_was_not_reported_cannot_be_mended(watch: Watch) -> None:
    report_resolved(watch.settings, "spark server", "Spark was started.")
    assert watch.says() == []
