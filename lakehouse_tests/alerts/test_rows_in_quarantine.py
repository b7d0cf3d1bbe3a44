"""Rows in quarantine: one incident per table, until the quarantine is empty or it is closed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.monitor_context import describe_rows
from lakehouse.alerts.operator_actions import close, find_alert
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse_tests.alerts.watch import Watch

SCHEMA = pa.schema(
    [
        ("_reasons", pa.list_(pa.string())),
        ("_source_file", pa.string()),
        ("_quarantined_at", pa.timestamp("us", tz="UTC")),
    ]
)
LATER = timedelta(minutes=10)


class Quarantine:
    """The quarantine of the table, which has ten rows."""

    def __init__(self, watch: Watch) -> None:
        (watch.settings.home / "warehouse").mkdir(parents=True, exist_ok=True)
        client = Catalog.of(watch.settings).client
        client.create_namespace("silver")
        main = pa.table({"id": list(range(10))})
        self.main = client.create_table("silver.fruits", main.schema)
        self.main.append(main)
        self.table = client.create_table("silver.fruits_quarantine", SCHEMA)

    def add(
        self, rows: int, file: str = "a.csv", rule: str = "castable_id", run_id: str = ""
    ) -> None:
        row = {"_reasons": [rule], "_source_file": file, "_quarantined_at": datetime.now(UTC)}
        self.table.append(
            pa.Table.from_pylist([row] * rows, SCHEMA), snapshot_properties=_stamp(run_id)
        )

    def publish(self, rows: int, run_id: str) -> None:
        self.main.append(
            pa.table({"id": list(range(rows))}), snapshot_properties=_stamp(run_id)
        )

    def remove(self, file: str, **summary: str) -> None:
        self.table.delete(f"_source_file == '{file}'", snapshot_properties=summary)


def _stamp(run_id: str) -> dict[str, str]:
    return (
        CommitProperties(kind="write", write_id="w", run_id=run_id).to_summary()
        if run_id
        else {}
    )


@pytest.fixture
def quarantine(watch: Watch) -> Quarantine:
    return Quarantine(watch)


def test_the_message_has_count_share_and_rules(watch: Watch, quarantine: Quarantine) -> None:
    quarantine.add(2)
    (alert,) = watch.round()
    assert (alert.title, alert.severity, alert.table) == (
        "silver.fruits: 2 rows in quarantine",
        "warn",
        "silver.fruits",
    )
    assert alert.lines[0] == "2 of 12 rows (16.67%), by rule: castable_id 2."
    assert alert.lines[-1] == f"Next: lakehouse alerts close {alert.alert_id} --why …"
    assert watch.titles() == []


@pytest.mark.long
def test_rows_of_an_unfinished_run_are_sent_after_it(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.add(1)
    watch.round()
    job = watch.definitions.resolve_implicit_global_asset_job_def()
    run = watch.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    quarantine.add(2, "b.csv", run_id=run.run_id)
    assert watch.titles(later=LATER) == []
    quarantine.publish(7, run.run_id)
    watch.instance.report_run_canceled(run)
    (more,) = watch.round(later=LATER)
    assert more.title == "More: silver.fruits: 3 rows in quarantine"
    assert more.lines[0].startswith("2 more since")
    assert any("3 of 20 rows (15.00%)" in line for line in more.lines)


@pytest.mark.parametrize(
    ("first", "second", "count"), [(78, 78, 1), (78, 79, 2), (None, None, 1)]
)
def test_a_delivered_row_is_shown_once(
    first: int | None, second: int | None, count: int
) -> None:
    row = {"amount": "twelve", "_source_file": "a.csv", "_source_sha256": "f3f2"}
    assert (
        len(
            describe_rows(
                [{**row, "_source_row": first}, {**row, "_source_row": second}], frozenset()
            )
        )
        == count
    )


@pytest.mark.long
def test_checks_and_good_runs_do_not_resolve_it(watch: Watch, quarantine: Quarantine) -> None:
    quarantine.add(2)
    quarantine.add(1, "b.csv")
    watch.round()
    watch.run()
    watch.run(only_checks=True)
    quarantine.remove("b.csv")
    assert watch.titles(later=LATER) == []
    quarantine.remove("a.csv")
    (over,) = watch.round(later=LATER)
    assert (over.title, over.lines[0]) == (
        "Resolved: silver.fruits: 2 rows in quarantine",
        "The quarantine is empty.",
    )


@pytest.mark.long
def test_the_checks_of_quarantined_rows_are_no_incidents(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.add(1)
    watch.run("castable_id")
    assert watch.titles() == ["silver.fruits: 1 row in quarantine"]


def test_a_row_without_a_partition_fails_its_check_without_a_quarantine(
    watch: Watch,
) -> None:
    kept = [rule for rule in watch.table.rules if rule.on_failure != "quarantine"]
    watch.table = replace(watch.table, rules=kept)
    watch.run("has_partition")
    assert watch.titles() == ["silver.fruits: check has_partition warns"]


@pytest.mark.long
def test_a_published_row_that_breaks_a_quarantining_rule_is_an_incident(
    watch: Watch,
) -> None:
    watch.run()
    watch.run("castable_id", only_checks=True)
    assert watch.titles() == ["silver.fruits: check castable_id warns"]
    watch.run()
    assert watch.titles() == []
    watch.run(only_checks=True)
    assert watch.titles() == ["Resolved: silver.fruits: check castable_id warns"]


@pytest.mark.long
def test_a_closed_incident_opens_again_with_more_rows(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.add(2)
    (alert,) = watch.round()
    found = find_alert(watch.settings, alert.alert_id[:8])
    close(watch.settings, found, by="ben", why="they are tests")
    (over,) = watch.round(later=LATER)
    assert over.title == "Resolved: silver.fruits: 2 rows in quarantine"
    assert over.lines[0] == "Closed by ben: they are tests"
    assert watch.titles(later=LATER) == []
    quarantine.add(1, "b.csv")
    assert watch.titles(later=2 * LATER) == ["silver.fruits: 3 rows in quarantine"]


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_removed_quarantine_is_resolved(
    watch: Watch, quarantine: Quarantine, is_dropped: bool
) -> None:
    quarantine.add(2)
    (alert,) = watch.round()
    declared = watch.table
    if is_dropped:
        Catalog.of(watch.settings).client.drop_table("silver.fruits_quarantine")
    else:
        kept = [rule for rule in declared.rules if rule.on_failure != "quarantine"]
        watch.table = replace(declared, rules=kept)
    (over,) = watch.round(later=LATER)
    assert (over.title, over.lines[0]) == (
        f"Resolved: {alert.title}",
        "silver.fruits has no quarantine any more.",
    )
    watch.table = declared
    watch.round(later=2 * LATER)
    assert bool(read_state(watch.settings).open) != is_dropped


def test_an_unchanged_quarantine_is_not_read(
    watch: Watch, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantine.add(2)
    watch.round()
    monkeypatch.setattr("lakehouse.alerts.rows_in_quarantine.count_quarantined", None)
    assert watch.titles(later=LATER) == []
    assert list(read_state(watch.settings).open) == ["quarantined silver.fruits"]
