"""Incidents that other processes report, such as a killed server."""

from datetime import timedelta

from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse_tests.alerts.watch import Watch

DIED = Report("spark server", "Spark died", ("Killed by signal 9.",))


def test_a_report_sends_one_message_and_its_resolution(watch: Watch) -> None:
    report_firing(watch.settings, DIED)
    (alert,) = watch.round()
    assert (alert.title, alert.severity, alert.lines[0]) == (
        "Spark died",
        "error",
        "Killed by signal 9.",
    )
    report_firing(watch.settings, DIED)
    assert watch.titles() == []
    report_resolved(watch.settings, DIED.key, "Spark was restarted.")
    (over,) = watch.round()
    assert (over.title, over.lines[0]) == ("Resolved: Spark died", "Spark was restarted.")
    assert watch.titles() == []


def test_reports_between_two_rounds_are_sent_in_order(watch: Watch) -> None:
    report_firing(watch.settings, DIED)
    report_resolved(watch.settings, DIED.key, "Spark was restarted.")
    assert watch.titles() == ["Spark died", "Resolved: Spark died"]
    assert watch.titles(later=timedelta(days=1)) == []
