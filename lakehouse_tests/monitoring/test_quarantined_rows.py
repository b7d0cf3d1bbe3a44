"""Rows in quarantine are one thing of a table: told when they come and grow, until none is left
or a person says so.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.monitoring.acknowledgements import acknowledge, close, find_alert
from lakehouse.monitoring.alert_state import read_state
from lakehouse.monitoring.detectors.monitor_context import describe_rows
from lakehouse_tests.monitoring.watch import Watch

SCHEMA = pa.schema(
    [
        ("_reasons", pa.list_(pa.string())),
        ("_source_file", pa.string()),
        ("_quarantined_at", pa.timestamp("us", tz="UTC")),
    ]
)
LATER = timedelta(minutes=10)


class Quarantine:
    """The quarantine of the watched table, beside a table of ten rows."""

    def __init__(self, watch: Watch) -> None:
        (watch.settings.home / "warehouse").mkdir(parents=True, exist_ok=True)
        client = Catalog.of(watch.settings).client
        client.create_namespace("silver")
        main = pa.table({"id": list(range(10))})
        self.main = client.create_table("silver.fruits", main.schema)
        self.main.append(main)
        self.table = client.create_table("silver.fruits_quarantine", SCHEMA)

    def refuse(
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

    def take_out(self, file: str, **summary: str) -> None:
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


@pytest.mark.long
def test_rows_that_come_are_told_with_their_number_rules_share_and_files(
    watch: Watch, quarantine: Quarantine
) -> None:
    assert watch.says() == []
    quarantine.refuse(2)
    (alert,) = watch.look()
    assert (alert.title, alert.severity, alert.table) == (
        "silver.fruits: 2 rows in quarantine",
        "warn",
        "silver.fruits",
    )
    assert alert.lines[0] == "2 of 12 rows (16.67%), by rule: castable_id 2."
    assert alert.lines[1].startswith("The newest 2 rows came at 20")
    assert alert.lines[1].endswith(" UTC with a.csv.")
    assert alert.lines[-1] == f"Next: lakehouse alerts close {alert.alert_id} --why …"
    assert watch.says() == []


@pytest.mark.long
@pytest.mark.parametrize("is_published", [True, False])
def test_rows_of_a_run_that_goes_on_are_told_once_it_published_the_others_or_ended(
    watch: Watch, quarantine: Quarantine, is_published: bool
) -> None:
    quarantine.refuse(1)
    watch.look()
    job = watch.definitions.resolve_implicit_global_asset_job_def()
    run = watch.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    quarantine.refuse(2, "b.csv", run_id=run.run_id)
    assert watch.says(later=LATER) == []
    if is_published:
        quarantine.publish(7, run.run_id)
    else:
        watch.instance.report_run_canceled(run)
    (more,) = watch.look(later=LATER)
    assert more.title == "More: silver.fruits: 3 rows in quarantine"
    assert more.lines[0].startswith("2 more came since")
    share = "3 of 20 rows (15.00%)" if is_published else "3 of 13 rows (23.08%)"
    assert any(share in line for line in more.lines)


@pytest.mark.long
def test_a_row_that_breaks_two_rules_is_shown_once(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(1)
    quarantine.refuse(1, rule="unique_fruit")
    watch.run("castable_id", "unique_fruit")
    (alert,) = (one for one in watch.look() if "quarantine" in one.title)
    assert [line[:9] for line in alert.lines if line.startswith("Row: ")] == [
        "Row: id=x",
        "Row: id=y",
    ]


@pytest.mark.parametrize(
    ("first", "second", "count"), [(78, 78, 1), (78, 79, 2), (None, None, 1)]
)
def test_a_delivered_row_is_shown_once_however_often_it_was_refused(
    first: int | None, second: int | None, count: int
) -> None:
    came = {"amount": "twelve", "_source_file": "a.csv", "_source_sha256": "f3f2"}
    assert (
        len(
            describe_rows(
                [{**came, "_source_row": first}, {**came, "_source_row": second}], frozenset()
            )
        )
        == count
    )


def test_the_name_of_a_file_steers_no_terminal(watch: Watch, quarantine: Quarantine) -> None:
    quarantine.refuse(1, "a\x1b[2J\n.csv")
    (alert,) = watch.look()
    assert "\n".join([alert.title, *alert.lines]).replace("\n", "").isprintable()
    assert alert.lines[1].endswith(" UTC with a\\u001b[2J\\n.csv.")


@pytest.mark.long
def test_neither_a_check_nor_a_good_run_nor_another_rejection_ends_it(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(2)
    quarantine.refuse(1, "b.csv")
    watch.look()
    watch.run()
    watch.run(checks_alone=True)
    quarantine.take_out("b.csv")
    assert watch.says(later=LATER) == []
    quarantine.take_out("a.csv")
    (over,) = watch.look(later=LATER)
    assert (over.title, over.lines[0]) == (
        "Resolved: silver.fruits: 2 rows in quarantine",
        "The quarantine is empty.",
    )


@pytest.mark.long
def test_what_is_over_says_who_rejected_the_file_and_why(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(2)
    watch.look()
    delivery = RejectedDelivery("a.csv", "0" * 64)
    quarantine.take_out("a.csv", **delivery.to_summary(by="somebody", why="it came by mistake"))
    (over,) = watch.look(later=LATER)
    assert (
        over.lines[0] == "The quarantine is empty: somebody rejected a.csv: it came by mistake"
    )
    assert over.lines[2:] == ("Table: http://127.0.0.1:3000/assets/silver/fruits_quarantine",)


def test_what_is_over_leads_to_the_run_that_took_the_last_rows_out(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(2)
    watch.look()
    commit = CommitProperties(kind="write", write_id="1", run_id="0123abcd-5")
    quarantine.take_out("a.csv", **commit.to_summary())
    # What changes the table after that took no row out.
    quarantine.table.append(SCHEMA.empty_table())
    (over,) = watch.look(later=LATER)
    assert over.lines[0] == "The quarantine is empty since run 0123abcd."
    assert over.lines[2] == "Run: http://127.0.0.1:3000/runs/0123abcd-5"


@pytest.mark.scenario
def test_two_rows_more_are_told_though_many_are_there(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(144)
    watch.look()
    quarantine.refuse(2, "b.csv")
    assert watch.says() == []
    (more,) = watch.look(later=LATER)
    assert more.title == "More: silver.fruits: 146 rows in quarantine"
    assert more.lines[0].startswith("2 more came since 20")
    assert more.saying == "grew"


@pytest.mark.long
def test_less_than_a_hundredth_more_waits_for_a_day_unless_another_rule_is_broken(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(500)
    watch.look()
    quarantine.refuse(2, "b.csv")
    assert watch.says(later=LATER) == []
    quarantine.refuse(1, "c.csv", rule="length_fruit")
    assert watch.says(later=LATER) == ["More: silver.fruits: 503 rows in quarantine"]
    quarantine.refuse(1, "d.csv")
    assert watch.says(later=2 * LATER) == []
    # The feed is overdue too by then.
    assert "Still firing: silver.fruits: 504 rows in quarantine" in watch.says(
        later=timedelta(hours=25)
    )


@pytest.mark.long
def test_rows_that_replace_others_are_new(watch: Watch, quarantine: Quarantine) -> None:
    quarantine.refuse(3)
    watch.look()
    quarantine.take_out("a.csv")
    quarantine.refuse(3, "b.csv")
    (more,) = watch.look(later=LATER)
    assert more.lines[0].startswith("3 more came since")
    assert more.title == "More: silver.fruits: 3 rows in quarantine"


@pytest.mark.long
def test_a_run_that_quarantines_is_told_once_and_not_by_its_checks(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(1)
    watch.run("castable_id")
    assert watch.says() == ["silver.fruits: 1 row in quarantine"]


@pytest.mark.long
def test_a_row_of_no_partition_is_told_as_one_in_quarantine_and_not_by_its_check(
    watch: Watch, quarantine: Quarantine
) -> None:
    quarantine.refuse(1, rule="has_partition")
    watch.run("has_partition", checks_alone=True)
    (alert,) = watch.look()
    assert alert.title == "silver.fruits: 1 row in quarantine"
    assert alert.lines[0] == "1 of 11 rows (9.09%), by rule: has_partition 1."


def test_a_row_of_no_partition_is_told_by_its_check_where_there_is_no_quarantine(
    watch: Watch,
) -> None:
    kept = [rule for rule in watch.table.rules if rule.on_failure != "quarantine"]
    watch.table = replace(watch.table, rules=kept)
    watch.run("has_partition")
    assert watch.says() == ["silver.fruits: check has_partition warns"]


@pytest.mark.long
def test_a_row_that_readers_see_and_that_breaks_a_quarantining_rule_is_told(
    watch: Watch,
) -> None:
    watch.run()
    watch.run("castable_id", checks_alone=True)
    assert watch.says() == ["silver.fruits: check castable_id warns"]
    # A batch without such a row says nothing of the one that stands there.
    watch.run()
    assert watch.says() == []
    watch.run(checks_alone=True)
    assert watch.says() == ["Resolved: silver.fruits: check castable_id warns"]


@pytest.mark.long
def test_a_person_closes_it_until_more_come(watch: Watch, quarantine: Quarantine) -> None:
    quarantine.refuse(2)
    (alert,) = watch.look()
    found = find_alert(watch.settings, alert.alert_id[:8])
    close(watch.settings, found, by="somebody", why="they are tests")
    (over,) = watch.look(later=LATER)
    assert over.title == "Resolved: silver.fruits: 2 rows in quarantine"
    assert over.lines[0] == "Closed by somebody: they are tests"
    assert over.lakehouse == watch.settings.title
    assert read_state(watch.settings).open == {}
    assert watch.says(later=LATER) == []
    with pytest.raises(UsageError, match="is not open now"):
        close(watch.settings, found, by="somebody", why="once more")
    quarantine.refuse(1, "b.csv")
    assert watch.says(later=2 * LATER) == ["silver.fruits: 3 rows in quarantine"]


@pytest.mark.long
def test_what_is_acknowledged_is_not_repeated_and_told_when_it_is_over(watch: Watch) -> None:
    watch.run("unique_fruit")
    (alert,) = watch.look()
    acknowledge(watch.settings, alert, by="somebody", why="the source is asked")
    assert watch.says(later=timedelta(hours=30)) == []
    assert [one.acknowledged for one in read_state(watch.settings).open.values()] == [
        "somebody: the source is asked"
    ]
    watch.run()
    assert watch.says(later=timedelta(hours=31)) == [
        "Resolved: silver.fruits: check unique_fruit failed"
    ]


def test_the_rows_are_read_only_where_the_quarantine_changed(
    watch: Watch, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantine.refuse(2)
    watch.look()
    monkeypatch.setattr(
        "lakehouse.monitoring.detectors.quarantined_rows.quarantined_rows", None
    )
    assert watch.says(later=LATER) == []
    assert list(read_state(watch.settings).open) == ["quarantined silver.fruits"]
