"""Alerts about quarantined, blocked and rejected deliveries, and the commands that resolve them."""

import json
import logging
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.incidents import Alert
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import read_alerts
from lakehouse.definitions import FEEDS, TABLES, defs
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import put_fruits
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

BLOCKED = "silver.fruits is blocked by rule excluded_fruit_in_any_spelling"


def run_round(home: Path, settings: Settings | None = None) -> list[Alert]:
    """Run a round of the sensor in this process, and return its messages."""
    settings = settings or settings_at(home)
    before = len(read_alerts(settings))
    graph, feeds = defs.resolve_asset_graph(), tuple(FEEDS.values())
    with open_instance(settings) as instance:
        now = datetime.now(UTC)
        context = MonitorContext(instance, graph, TABLES, feeds, settings, now)
        detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"))
    return read_alerts(settings)[before:]


def titles(alerts: list[Alert]) -> list[str]:
    return [alert.title for alert in alerts]


def deliver(lakehouse, home: Path, name: str, *rows: str) -> int:
    put_fruits(home, name, *rows)
    return lakehouse("ingest", "fruits").code


def commands(alert: Alert, begin: str) -> list[str]:
    """Return the commands of a message that begin so, without the name of the program."""
    found = (line.removeprefix("Next: ") for line in alert.lines)
    return [line.removeprefix("lakehouse ") for line in found if line.startswith(begin)]


@pytest.fixture
def blocked(lakehouse, home: Path, filled_by):
    """A lakehouse in which `silver.fruits` is blocked, after an earlier round."""

    def fill() -> None:
        run_round(home)
        assert deliver(lakehouse, home, "apple.csv", "1,Apple,false") == 0
        assert deliver(lakehouse, home, "banana.csv", "2,banana,false", "3,Kiwi,true") == 1

    filled_by("blocked").bring_back(fill)
    return lakehouse


@pytest.mark.long
def test_a_blocked_table_sends_one_message_with_commands(blocked, home: Path) -> None:
    (alert,) = run_round(home)
    assert alert.title == BLOCKED
    assert "excluded_fruit_in_any_spelling" in alert.lines[0]
    (good,) = (line for line in alert.lines if line.startswith("Nothing was published"))
    query = "SELECT snapshot_id FROM silver.fruits.refs WHERE name = 'main'"
    (main,) = json.loads("".join(blocked("sql", query, "--format", "json").out))
    assert f"silver.fruits is still at snapshot {main['snapshot_id']}." in good
    assert any(line.startswith("Row: ") and "fruit=banana" in line for line in alert.lines)
    shown = [
        "\n".join(blocked(*shlex.split(command)).out)
        for command in commands(alert, "lakehouse sql")
    ]
    assert "banana" in shown[0] and not any("(0 rows)" in text for text in shown)
    (reject,) = commands(alert, "lakehouse reject")
    assert reject.startswith("reject banana.csv --feed fruits --sha256 ")
    assert len(commands(alert, "lakehouse publish")) == 1
    assert run_round(home) == []


@pytest.mark.long
def test_neither_a_retry_nor_a_check_of_main_resolves_a_blocked_table(blocked, home):
    assert titles(run_round(home)) == [BLOCKED]
    assert blocked("retry", "silver.fruits").code == 1
    assert blocked("check", "silver.fruits").code == 0
    assert run_round(home) == []


@pytest.mark.long
def test_a_publish_after_rejecting_the_file_resolves_a_blocked_table(blocked, home):
    run_round(home)
    assert blocked("reject", "banana.csv", "--feed", "fruits", "--why", "by mistake").code == 0
    assert run_round(home) == []
    assert deliver(blocked, home, "plum.csv", "4,Plum,false") == 0
    assert titles(run_round(home)) == [f"Resolved: {BLOCKED}"]


@pytest.mark.long
def test_personal_data_is_in_no_message_log_reason_sample_or_event(lakehouse, home, caplog):
    planted = ("zoe.planted@example", "zoe.planted")
    run_round(home)
    inbox = home / "inbox" / "bnpl"
    inbox.mkdir(parents=True)
    header = (
        "transaction_id,customer_id,merchant_id,merchant_category,amount,currency,installments,payment_method,status,"
        "transaction_date,created_at,customer_email,region"
    )
    row = "{},1,M00001,food,{},MYR,3,card,APPROVED,2026-03-04,2026-03-04T09:00:00+08:00,zoe.planted@example,Penang"
    (inbox / "a.csv").write_text(
        "\n".join([header, row.format(1, "12.50"), row.format(2, "12.505"), ""])
    )
    (inbox / "b.csv").write_text(
        "\n".join([header, f"{row.format(3, '1.00')},zoe.planted", ""])
    )
    assert lakehouse("ingest", "bnpl").code == 1
    alerts = run_round(home)
    assert "silver.bnpl_transactions_clean: 1 row in quarantine" in titles(alerts)
    assert any("masked:" in line for alert in alerts for line in alert.lines)
    with open_instance(settings_at(home)) as instance:
        events = [
            str(record)
            for run in instance.get_runs()
            for record in instance.all_logs(run.run_id)
        ]
    texts = [
        *events,
        caplog.text,
        *(path.read_text(errors="replace") for path in (home / "rejected").rglob("*.json")),
        *(path.read_text() for path in (home / "alerts").rglob("*.json")),
        (home / "alerts.jsonl").read_text(),
        "\n".join(lakehouse("alerts").out),
    ]
    assert [text[:200] for text in texts for value in planted if value in text] == []
