"""Recipients: a webhook, an SNS topic, chat services and the record."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest

from lakehouse.alerts.incidents import Alert
from lakehouse.alerts.sinks import FILE_NAME, Sink, check_url, open_sinks, read_alerts
from lakehouse.cli.project.doctor_checks import findings
from lakehouse.errors import LakehouseError, SettingsError
from lakehouse.settings import Settings
from lakehouse_tests.alerts.receiver import Receiver, receiving
from lakehouse_tests.processes import wait_for

ALERT = Alert(
    "0123456789abcdef",
    "check silver.fruits a",
    "opened",
    "error",
    datetime(2026, 3, 1, 8, tzinfo=UTC),
    "silver.fruits: check a failed – Früchte",
    ("1 of 2 rows break it.",),
    "silver.fruits",
    "data-platform",
)


def sink(settings: Settings, url: str) -> Sink:
    return list(open_sinks(settings, [url], logging.getLogger("test")).values())[-1]


def test_a_webhook_gets_the_message_and_its_id(settings: Settings) -> None:
    with receiving() as receiver:
        # A scheme can be in upper case.
        url = receiver.url.replace("json://", "JSON://")
        sink(settings, f"{url}?+X-Team=data").send(ALERT)
        (taken,) = receiver.taken
    assert taken.body["title"] == ALERT.title
    assert (
        taken.body["message"]
        == f"1 of 2 rows break it.\nAlert 0123456789abcdef\nLakehouse {settings.title}"
    )
    assert taken.body["type"] == "failure"
    assert (taken.headers["idempotency-key"], taken.headers["x-team"]) == (
        ALERT.alert_id,
        "data",
    )


def test_a_failing_webhook_is_named_without_its_secret(settings: Settings) -> None:
    with pytest.raises(LakehouseError) as raised:
        sink(settings, "json://user:T0ken@127.0.0.1:1/").send(ALERT)
    assert "did not receive alert 0123456789abcdef" in str(raised.value)
    assert "T0ken" not in str(raised.value)


def test_a_topic_gets_the_message_with_filterable_attributes(aws_settings: Settings) -> None:
    endpoint = aws_settings.endpoint_url
    client = boto3.client("sns", endpoint_url=endpoint, region_name=aws_settings.region)
    topic = client.create_topic(Name="data")["TopicArn"]
    with receiving() as receiver:
        for severity in ("error", "warn"):
            policy = {
                "FilterPolicy": json.dumps({"severity": [severity], "table": ["silver.fruits"]})
            }
            place = f"http://127.0.0.1:{receiver.port}/{severity}"
            client.subscribe(TopicArn=topic, Protocol="http", Endpoint=place, Attributes=policy)
        check_url(aws_settings, topic)
        sink(aws_settings, topic).send(ALERT)
        wait_for(lambda: bool(notified(receiver)), "the notification")
        ((path, found),) = notified(receiver)
    assert path == "/error"
    assert found["Subject"] == "silver.fruits: check a failed ? Fr?chte"
    assert found["Message"] == f"{ALERT.title}\n{ALERT.text}\nLakehouse {aws_settings.title}"


def notified(receiver: Receiver) -> list[tuple[str, dict]]:
    """Return the notifications of SNS and their paths, without its confirmations."""
    return [
        (one.path, one.body) for one in receiver.taken if one.body.get("Type") == "Notification"
    ]


def test_the_record_has_each_message_once(settings: Settings) -> None:
    file = open_sinks(settings, [], logging.getLogger("test"))["file"]
    for _ in range(2):
        file.send(ALERT)
    (line,) = (settings.home / FILE_NAME).read_text().splitlines()
    assert json.loads(line)["lakehouse"] == settings.title
    assert read_alerts(settings) == [replace(ALERT, lakehouse=settings.title)]


def test_control_characters_are_escaped(settings: Settings, caplog) -> None:
    key, lines = (
        "rejected a\u2028\x1b[2J.csv",
        ("Row: note=\x1b]0;x\x07", "With a\nOver: all is well.csv."),
    )
    alert = replace(ALERT, key=key, title="file a\x1b[2J.csv", lines=lines)
    for one in open_sinks(settings, [], logging.getLogger("test")).values():
        one.send(alert)

    assert alert.title == "file a\\u001b[2J.csv"
    assert alert.text.splitlines()[:2] == [
        "Row: note=\\u001b]0;x\\u0007",
        "With a\\nOver: all is well.csv.",
    ]
    assert "\x1b" not in caplog.text
    (read,) = read_alerts(settings)
    assert (read.key, read.lines) == (key, alert.lines)


@pytest.mark.parametrize(
    "url", ["nosuchservice://x", "slack://", "arn:aws:s3:::lake", "arn:aws:sns:eu:1:x"]
)
def test_an_invalid_recipient_is_found_before_an_incident(settings: Settings, url: str) -> None:
    wrong = replace(settings, alert_urls=(url,))
    with pytest.raises(SettingsError):
        check_url(wrong, url)
    (found,) = (finding for finding in findings(wrong) if finding.name == "alerts")
    assert not found.ok


_CHATS = (
    "discord://1234567890/abcdefghijklmnop",
    "mmost://127.0.0.1/3ccdd113474722377935511fc85d3dd4",
    "rocket://user:pass@127.0.0.1/#general",
    "gchat://workspace/key/token",
    "workflows://host.example:443/workflow/signature",
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#data",
    "tgram://123456789:abcdefg_hijklmnop/12315544/",
)
_TRAPS = ("[text](http", "@everyone", "@all", "<!channel", "<http", "<a href")


@pytest.mark.parametrize("url", _CHATS, ids=lambda url: url.partition(":")[0])
def test_markup_in_data_reaches_no_chat(settings: Settings, url: str, monkeypatch) -> None:
    import requests

    payloads: list[str] = []

    def record(address: str, data: object = None, json: object = None, **_: object):
        payloads.append(str(data if json is None else json))
        answer = requests.Response()
        answer.status_code = 200
        answer._content = b"ok" if "slack" in address else b'{"ok": true, "status": "success"}'
        return answer

    monkeypatch.setattr(requests, "post", record)
    monkeypatch.setattr(requests, "request", lambda _, address, **rest: record(address, **rest))
    text = "[text](http://x.example) @everyone @all <!channel> <http://x|y> <a href='x'>b</a>"

    sink(settings, url).send(replace(ALERT, title=text, lines=(text,)))

    sent = "\n".join(payload.encode().decode("unicode_escape") for payload in payloads)
    assert "text" in sent
    assert [trap for trap in _TRAPS if trap in sent] == []
