"""Where alerts are delivered: the log and a file always, services that apprise knows, and
SNS.
"""

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.errors import LakehouseError, SettingsError
from lakehouse.monitoring.alert_settings import name_of
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings
from lakehouse.storage.append_line import append_line

if TYPE_CHECKING:
    import apprise

LOG, FILE = "log", "file"
FILE_NAME = "alerts.jsonl"
# Such services hand on headers of a URL, and what they call can tell a message that comes
# twice.
_WITH_HEADERS = ("json", "jsons", "form", "forms", "xml", "xmls")
_PLAIN_TEXT = (*_WITH_HEADERS, "mailto", "mailtos")
"""Data, and mail, whose HTML apprise escapes."""
_MARKUP = re.compile(r"(?<=\])(?=\()|(?<=@)(?=\w)|(?<=<)(?=[\w/!@#:&])")
"""Where a link `[text](url)`, a mention `@everyone`, and a tag `<a>`, `<!here>` or `<url|text>`
are broken: chat services do not agree on an escape sign, and apprise restores some.
"""
_INVISIBLE = "\u2060"
# A single line end is a space in the Markdown of a card of Teams.
_LINES_ARE_JOINED = ("workflow", "workflows")
_TOPIC = re.compile(r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_.-]+$")
_LONGEST_SUBJECT = 100


class Sink(Protocol):
    """Something that receives messages."""

    @property
    def name(self) -> str:
        """What it is called, without any secret."""

    def send(self, alert: Alert) -> None:
        """Deliver a message, or raise; the same one may come again after a process was
        killed.
        """


@dataclass(frozen=True)
class LogSink:
    """Python's log."""

    logger: logging.Logger
    lakehouse: str
    name: str = LOG

    def send(self, alert: Alert) -> None:
        """Log the message, as an error or a warning; that something is resolved is neither."""
        level = logging.ERROR if alert.severity == "error" else logging.WARNING
        if alert.saying == "recovered":
            level = logging.INFO
        self.logger.log(level, "%s\n%s\nLakehouse %s", alert.title, alert.text, self.lakehouse)


@dataclass(frozen=True)
class FileSink:
    """A file of one JSON object a line, which has every message, also those that were muted or
    only summarised.
    """

    path: Path
    lakehouse: str
    name: str = FILE

    def send(self, alert: Alert) -> None:
        """Add the message, unless it is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = replace(alert, lakehouse=self.lakehouse).to_json()
        line = json.dumps(record, ensure_ascii=False).encode()
        append_line(self.path, line, unless=json.dumps(alert.alert_id).encode())


@dataclass(frozen=True)
class AppriseSink:
    """A service that apprise knows by a URL."""

    url: str
    lakehouse: str
    """Which lakehouse it is of; people may be notified by several."""

    @property
    def name(self) -> str:
        """The kind of service, and which of several."""
        return name_of(self.url)

    def send(self, alert: Alert) -> None:
        """Notify the service; a webhook is given the alert's id as the header
        `Idempotency-Key`.
        """
        import apprise

        body = self._rendered(f"{alert.text}\nLakehouse {self.lakehouse}")
        title = self._rendered(alert.title)
        # It is text: what rows hold is no HTML and no Markdown, and apprise escapes it where a
        # service takes these.
        how = {"body_format": apprise.NotifyFormat.TEXT, "notify_type": _kind(apprise, alert)}
        if not self.service(alert.alert_id).notify(body, title=title, **how):
            raise LakehouseError(
                f"{self.name} did not receive alert {alert.alert_id}.",
                next_step=(
                    "`lakehouse alerts test` tries it again, and shows what apprise says."
                ),
            )

    def _rendered(self, text: str) -> str:
        """Return a text that its service shows as it is, and not as a link or a mention."""
        kind = self.url.partition("://")[0].lower()
        if kind not in _PLAIN_TEXT:
            text = _MARKUP.sub(_INVISIBLE, text)
        return text.replace("\n", "\n\n") if kind in _LINES_ARE_JOINED else text

    def service(self, message_id: str = "") -> "apprise.NotifyBase":
        """Return what speaks to the service.

        :raises SettingsError: when apprise does not understand the URL.
        """
        import apprise

        url = self.url
        if message_id and url.partition("://")[0] in _WITH_HEADERS:
            url += f"{'&' if '?' in url else '?'}+Idempotency-Key={message_id}"
        service = apprise.Apprise.instantiate(url)
        if not service:
            raise SettingsError(
                f"{self.name}: apprise does not understand this {self.url.partition('://')[0]}"
                " URL; expected one as its documentation has it.",
                next_step="Correct it in LAKEHOUSE_ALERT_URLS or in the file of routes.",
            )
        return service


@dataclass(frozen=True)
class SnsSink:
    """A topic of SNS; the usual AWS chain says who calls."""

    topic: str
    lakehouse: str
    region: str | None
    endpoint_url: str | None

    @property
    def name(self) -> str:
        """Which topic, without the account that it is of."""
        return name_of(self.topic)

    def send(self, alert: Alert) -> None:
        """Publish the message; subscribers can filter by its severity, table and what it
        says.
        """
        import boto3
        from botocore.config import Config

        region = self.topic.split(":")[3] or self.region
        quick = Config(connect_timeout=4, read_timeout=4, retries={"total_max_attempts": 1})
        client = boto3.client(
            "sns", region_name=region, endpoint_url=self.endpoint_url, config=quick
        )
        attributes = {
            "severity": alert.severity,
            "saying": alert.saying,
            "alert_id": alert.alert_id,
            "table": alert.table,
            "lakehouse": self.lakehouse,
        }
        ordered = {"MessageGroupId": "lakehouse", "MessageDeduplicationId": alert.alert_id}
        # A subject is one line of ASCII.
        subject = alert.title.encode("ascii", "replace").decode().replace("\n", " ")
        client.publish(
            TopicArn=self.topic,
            Subject=subject[:_LONGEST_SUBJECT],
            Message=f"{alert.title}\n{alert.text}\nLakehouse {self.lakehouse}",
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
                if value
            },
            **(ordered if self.topic.endswith(".fifo") else {}),
        )


def open_sinks(
    settings: Settings, urls: Iterable[str], logger: logging.Logger
) -> dict[str, Sink]:
    """Return the sinks by name: the file and the log, and one for each URL; nothing is called
    yet.
    """
    sinks: list[Sink] = [
        FileSink(settings.home / FILE_NAME, settings.title),
        LogSink(logger, settings.title),
    ]
    sinks += [_sink(settings, url) for url in urls]
    return {sink.name: sink for sink in sinks}


def check_url(settings: Settings, url: str) -> None:
    """Check a URL, and call nobody.

    :raises SettingsError: when apprise does not understand it, or it is no topic of SNS.
    """
    sink = _sink(settings, url)
    if isinstance(sink, AppriseSink):
        sink.service()
    elif not _TOPIC.match(url):
        raise SettingsError(
            f"{sink.name} is not the ARN of a topic; expected arn:aws:sns:REGION:ACCOUNT:NAME."
        )


def _sink(settings: Settings, url: str) -> Sink:
    if url.startswith("arn:"):
        return SnsSink(url, settings.title, settings.region, settings.endpoint_url)
    return AppriseSink(url, settings.title)


def _kind(apprise: Any, alert: Alert) -> Any:
    kinds = apprise.NotifyType
    if alert.saying == "recovered":
        return kinds.SUCCESS
    if alert.saying == "test":
        return kinds.INFO
    return kinds.FAILURE if alert.severity == "error" else kinds.WARNING
