"""What people are told of a delivery that a rule warns of or refuses, and what they can do
about it.
"""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.orchestration.alert import Alert
from lakehouse.orchestration.instance import open_instance
from lakehouse_tests.cli.telling import look, titles
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.monitoring.receiver import receiving
from lakehouse_tests.savepoint import FilledOnce

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

QUARANTINED = "silver.fruits: 1 row in quarantine"
HELD = "silver.fruits is blocked: rule excluded_fruit_in_any_spelling refused it"


def deliver(lakehouse, home: Path, name: str, *rows: str) -> int:
    inbox = home / "inbox" / "fruits"
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / name).write_text("\n".join(["id,fruit,berry", *rows, ""]))
    return lakehouse("ingest", "fruits").code


def commands(alert: Alert, begin: str) -> list[str]:
    """Return the commands of a message that begin so, without the name of the program."""
    found = (line.removeprefix("Next: ") for line in alert.lines)
    return [line.removeprefix("lakehouse ") for line in found if line.startswith(begin)]


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, filled: FilledOnce) -> Path:
    """The home that all who ask for `held` share, or one of the test's own."""
    return filled.home if "held" in request.fixturenames else tmp_path / "home"


@pytest.fixture
def held(lakehouse, home: Path, filled: FilledOnce):
    """A lakehouse that holds `silver.fruits` back, whose last look was before that."""

    def fill() -> None:
        look(home)
        assert deliver(lakehouse, home, "apple.csv", "1,Apple,false") == 0
        assert deliver(lakehouse, home, "banana.csv", "2,banana,false", "3,Kiwi,true") == 1

    filled.bring_back(fill)
    return lakehouse


@pytest.mark.long
def test_rows_in_quarantine_are_told_until_none_is_left_and_status_says_the_same(
    lakehouse, home: Path
) -> None:
    look(home)
    assert deliver(lakehouse, home, "1.csv", "x,Apple,false", "2,Pear,false") == 0
    (alert,) = look(home)
    assert alert.title == QUARANTINED
    assert alert.lines[0] == "1 of 2 rows (50.00%), by rule: castable_id 1."
    assert any(line.endswith(" UTC with 1.csv.") for line in alert.lines)
    in_clear, newest = commands(alert, "lakehouse sql")
    assert "WHERE _source_file = '1.csv' AND _source_row = 1" in in_clear
    for command in (in_clear, newest):
        assert any("Apple" in line for line in lakehouse(*shlex.split(command)).out)
    # Neither a check of what readers see, nor a good delivery, nor that another file is taken
    # out.
    assert lakehouse("check", "silver.fruits").code == 0
    assert deliver(lakehouse, home, "2.csv", "3,Plum,false") == 0
    assert lakehouse("reject", "2.csv", "--feed", "fruits", "--why", "by mistake").code == 0
    assert deliver(lakehouse, home, "3.csv", "4,Fig,false") == 0
    assert look(home) == []
    status = lakehouse("status").out
    assert any("1 row in quarantine" in line for line in status)
    assert status[-1].startswith("1 incident open")
    assert lakehouse("reject", "1.csv", "--feed", "fruits", "--why", "by mistake").code == 0
    assert titles(look(home)) == [f"Resolved: {QUARANTINED}"]
    assert not any(
        "in quarantine" in line or "incident" in line for line in lakehouse("status").out
    )


@pytest.mark.long
def test_a_person_closes_what_stays_in_quarantine(lakehouse, home: Path) -> None:
    look(home)
    assert deliver(lakehouse, home, "1.csv", "x,Apple,false", "2,Pear,false") == 0
    (alert,) = look(home)
    shown = lakehouse("alerts", alert.alert_id[:6])
    assert (shown.code, shown.out[0], shown.out[2]) == (0, QUARANTINED, alert.lines[0])
    assert shown.out[1].endswith(" warn, opened; open now")
    (command,) = commands(alert, "lakehouse alerts close")
    assert lakehouse(*shlex.split(command)).code == 2
    assert lakehouse(*shlex.split(command.replace("…", "'it stays so'"))).code == 0
    assert look(home) == []
    assert f"Resolved: {QUARANTINED}" in lakehouse("alerts").out[3]
    ran = lakehouse("alerts", "ack", alert.alert_id, "--why", "too late")
    assert (ran.code, "is not open now" in ran.err[0]) == (2, True)
    assert lakehouse("alerts", "zzzz").code == 2


@pytest.mark.long
def test_a_table_that_is_held_back_is_one_message_with_the_ways_out(held, home: Path) -> None:
    (alert,) = look(home)
    assert (alert.title, alert.brief) == (HELD, "rule excluded_fruit_in_any_spelling")
    assert "excluded_fruit_in_any_spelling" in alert.lines[0]
    (good,) = (line for line in alert.lines if line.startswith("Nothing was published"))
    query = "SELECT snapshot_id FROM silver.fruits.refs WHERE name = 'main'"
    (main,) = json.loads("".join(held("sql", query, "--format", "json").out))
    assert f"silver.fruits is as it was, at snapshot {main['snapshot_id']} of 20" in good
    assert any(line.startswith("Row: ") and "fruit=banana" in line for line in alert.lines)
    shown = [
        "\n".join(held(*shlex.split(command)).out)
        for command in commands(alert, "lakehouse sql")
    ]
    assert "banana" in shown[0] and not any("(0 rows)" in text for text in shown)
    (reject,) = commands(alert, "lakehouse reject")
    assert reject.startswith("reject banana.csv --feed fruits --sha256 ")
    assert len(commands(alert, "lakehouse publish")) == 1
    assert look(home) == []


@pytest.mark.long
def test_trying_again_is_not_told_again_and_a_check_of_main_does_not_end_it(
    held, home: Path
) -> None:
    assert titles(look(home)) == [HELD]
    assert held("retry", "silver.fruits").code == 1
    assert held("check", "silver.fruits").code == 0
    assert look(home) == []


@pytest.mark.long
def test_taking_the_file_out_and_the_next_delivery_end_it(held, home: Path) -> None:
    look(home)
    assert held("reject", "banana.csv", "--feed", "fruits", "--why", "by mistake").code == 0
    assert look(home) == []
    assert deliver(held, home, "plum.csv", "4,Plum,false") == 0
    assert titles(look(home)) == [f"Resolved: {HELD}"]


@pytest.mark.long
def test_publishing_it_all_the_same_ends_it(held, home: Path) -> None:
    (alert,) = look(home)
    (command,) = commands(alert, "lakehouse publish")
    assert held(*shlex.split(command.replace("…", "'it is one'"))).code == 0
    assert titles(look(home)) == [f"Resolved: {HELD}"]


@pytest.mark.long
def test_a_muted_table_is_recorded_and_told_to_nobody(held, home: Path) -> None:
    until = "2999-12-01T08:00+08:00"
    ran = held(
        "mute", "silver.fruits", "--until", until, "--why", "it is known", "--by", "somebody"
    )
    assert ran.out == ["silver.fruits is muted until 2999-12-01 00:00:00Z; it ends by itself."]
    with receiving() as receiver:
        settings = replace(settings_at(home), alert_urls=(receiver.url,))
        (alert,) = look(home, settings)
        assert alert.muted == "until 2999-12-01T00:00+00:00 by somebody: it is known"
        assert receiver.taken == []
        listed = held("alerts")
        assert "opened, muted" in listed.out[2]
        assert listed.out[-1].startswith(
            "silver.fruits is muted until 2999-12-01 00:00:00Z by somebody, since 20"
        )
        assert held("mute", "silver.fruits", "--off").code == 0
        assert titles(look(home, settings)) == [HELD]
        assert receiver.titles == [HELD]


@pytest.mark.long
def test_what_was_told_is_listed(held, home: Path) -> None:
    look(home)
    listed = held("alerts")
    assert listed.out[0].split(" | ")[:2] == ["at                  ", "severity"]
    assert HELD in listed.out[2]
    assert listed.out[-1] == "(1 alert; 1 incident open)"
    (record,) = json.loads("".join(held("alerts", "--open", "--format", "json").out))
    assert (record["title"], record["is_open"], record["table"]) == (
        HELD,
        True,
        "silver.fruits",
    )


def test_where_nobody_looked_nothing_is_said_to_be_whole(lakehouse) -> None:
    assert lakehouse("alerts").out[-1] == "Nothing was monitored yet; `lakehouse dev` does."


@pytest.mark.long
def test_a_file_that_is_rejected_is_told(lakehouse, home: Path) -> None:
    look(home)
    inbox = home / "inbox" / "fruits"
    inbox.mkdir(parents=True)
    (inbox / "short.csv").write_text("id,fruit\n1,Damson\n")
    assert lakehouse("ingest", "fruits").code == 1
    (alert,) = look(home)
    assert alert.title == "feed fruits: file short.csv was rejected"
    assert alert.lines[0].startswith(
        "missing column 'berry': found a header with 'id', 'fruit';"
    )
    assert deliver(lakehouse, home, "short.csv", "1,Damson,false") == 0
    assert titles(look(home)) == ["Resolved: feed fruits: file short.csv was rejected"]


@pytest.mark.long
def test_personal_data_is_in_no_message_log_reason_sample_or_event(
    lakehouse, home: Path, caplog
) -> None:
    planted = ("zoe.planted@example", "zoe.planted")
    look(home)
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
    alerts = look(home)
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


def test_a_test_message_says_for_each_sink_whether_it_arrived(
    lakehouse, home: Path, monkeypatch
) -> None:
    with receiving() as receiver:
        monkeypatch.setenv("LAKEHOUSE_ALERT_URLS", f"{receiver.url} json://127.0.0.1:1/")
        ran = lakehouse("alerts", "test")
        assert receiver.titles == ["Test of the lakehouse's alerts"]
    assert ran.code == 1
    assert [line.split()[0] for line in ran.out] == ["ok", "ok", "ok", "FAIL"]
    assert "1 sink did not receive the message: json-" in ran.err[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("silver.fruits", "--until", "2020-01-01T00:00Z"),
            "which is past; expected a moment to come",
        ),
        (("silver.fruits", "--until", "2999-01-01T00:00"), "without its offset from UTC"),
        (("silver.fruits", "--until", "tomorrow"), "expected such as 2h, 30m or 3d"),
        (("silver.fruits",), "Expected --until with a moment, or --off"),
        (("silver.nothing", "--off"), "'silver.nothing' is not a declared table"),
        (("nothing.*", "--off"), "is the pattern of no table"),
    ],
)
def test_a_wrong_mute_is_explained(lakehouse, arguments: tuple[str, ...], said: str) -> None:
    ran = lakehouse("mute", *arguments)
    assert ran.code == 2
    assert said in ran.err[0]
