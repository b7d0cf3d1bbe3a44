"""Where messages are delivered: a webhook, a topic of SNS, and the file that has them all."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest

from lakehouse.cli.doctor_checks import findings
from lakehouse.errors import LakehouseError, SettingsError
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.sinks import FILE_NAME, Sink, check_url, open_sinks
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings
from lakehouse_tests.monitoring.receiver import Receiver, receiving
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
_TOPIC = "arn:aws:sns:eu-central-1:123456789012:data"


def sink(settings: Settings, url: str) -> Sink:
    return list(open_sinks(settings, [url], logging.getLogger("test")).values())[-1]


def test_a_webhook_is_told_with_what_tells_a_message_that_comes_twice(
    settings: Settings,
) -> None:
    with receiving() as receiver:
        sink(settings, f"{receiver.url}?+X-Team=data").send(ALERT)
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


def test_a_webhook_that_does_not_take_it_is_named_without_its_secret(
    settings: Settings,
) -> None:
    with pytest.raises(LakehouseError) as raised:
        sink(settings, "json://user:T0ken@127.0.0.1:1/").send(ALERT)
    assert "did not receive alert 0123456789abcdef" in str(raised.value)
    assert "T0ken" not in str(raised.value)


def test_a_topic_of_sns_is_told(aws_settings: Settings) -> None:
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
    """What SNS sent, and where to; it asks first whether somebody wants that."""
    return [
        (one.path, one.body) for one in receiver.taken if one.body.get("Type") == "Notification"
    ]


def test_a_topic_that_is_not_there_is_an_error(aws_settings: Settings) -> None:
    with pytest.raises(Exception, match="NotFound"):
        sink(aws_settings, _TOPIC).send(ALERT)


def test_the_file_has_a_message_once_however_often_it_comes(settings: Settings) -> None:
    file = open_sinks(settings, [], logging.getLogger("test"))["file"]
    for _ in range(2):
        file.send(ALERT)
    (line,) = (settings.home / FILE_NAME).read_text().splitlines()
    assert Alert.from_json(json.loads(line)) == replace(ALERT, lakehouse=settings.title)


def test_no_name_or_value_steers_a_terminal_or_makes_a_line_of_its_own(
    settings: Settings, caplog
) -> None:
    key, lines = (
        "rejected a\u2028\x1b[2J.csv",
        (
            "Row: note=\x1b]0;x\x07",
            "With a\nOver: all is well.csv.",
        ),
    )
    alert = replace(ALERT, key=key, title="file a\x1b[2J.csv", lines=lines, brief="a\rb")
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
def test_a_place_that_nothing_can_be_sent_to_is_found_before_something_breaks(
    settings: Settings, url: str
) -> None:
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
