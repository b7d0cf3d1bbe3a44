"""Recipients of alerts: the record and the log, services of apprise, and SNS topics."""

import json
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.alerts.alert_routes import name_of
from lakehouse.alerts.incidents import Alert
from lakehouse.errors import LakehouseError, SettingsError
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import append_line
from lakehouse.storage.json_files import type_adapter

if TYPE_CHECKING:
    import apprise

LOG, FILE = "log", "file"
FILE_NAME = "alerts.jsonl"
_WITH_HEADERS = ("json", "jsons", "form", "forms", "xml", "xmls")
_PLAIN_TEXT = (*_WITH_HEADERS, "mailto", "mailtos")
"""Data, and mail, in which apprise escapes HTML."""
_MARKUP = re.compile(r"(?<=\])(?=\()|(?<=@)(?=\w)|(?<=<)(?=[\w/!@#:&])")
"""Positions that break a link `[text](url)`, a mention `@everyone`, and a tag `<a>`, `<!here>`
or `<url|text>`: chat services have no common escape character, and apprise undoes some.
"""
_INVISIBLE = "\u2060"
_TOPIC = re.compile(r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$")
_LONGEST_SUBJECT = 100


class Sink(Protocol):
    """A recipient of messages."""

    @property
    def name(self) -> str:
        """A name without secrets."""

    def send(self, alert: Alert) -> None:
        """Deliver a message, or raise an exception."""


@dataclass(frozen=True)
class LogSink:
    """Python's log."""

    logger: logging.Logger
    lakehouse: str
    name: str = LOG

    def send(self, alert: Alert) -> None:
        """Log the message with a level for its severity."""
        level = logging.ERROR if alert.severity == "error" else logging.WARNING
        if alert.saying == "recovered":
            level = logging.INFO
        self.logger.log(level, "%s\n%s\nLakehouse %s", alert.title, alert.text, self.lakehouse)


@dataclass(frozen=True)
class FileSink:
    """The record: one JSON object per line, for every message."""

    path: Path
    lakehouse: str
    name: str = FILE

    def send(self, alert: Alert) -> None:
        """Append the message, unless the record contains it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = replace(alert, lakehouse=self.lakehouse).to_json()
        line = json.dumps(record, ensure_ascii=False).encode()
        append_line(self.path, line, unless=json.dumps(alert.alert_id).encode())


@dataclass(frozen=True)
class AppriseSink:
    """A service of apprise."""

    url: str
    lakehouse: str

    @property
    def name(self) -> str:
        """The service and a hash of its URL."""
        return name_of(self.url)

    def send(self, alert: Alert) -> None:
        """Notify the service; webhooks get the alert's id as the header `Idempotency-Key`."""
        import apprise

        body = self._escaped(f"{alert.text}\nLakehouse {self.lakehouse}")
        service = self.service(alert.alert_id)
        if not service.notify(
            body,
            title=self._escaped(alert.title),
            body_format=apprise.NotifyFormat.TEXT,
            notify_type=_notify_type(apprise, alert),
        ):
            raise LakehouseError(
                f"{self.name} did not receive alert {alert.alert_id}.",
                next_step="Run `lakehouse alerts test`, which shows the messages of apprise.",
            )

    def _escaped(self, text: str) -> str:
        if self._scheme not in _PLAIN_TEXT:
            text = _MARKUP.sub(_INVISIBLE, text)
        return text

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    def service(self, message_id: str = "") -> "apprise.NotifyBase":
        """Return the service of the URL.

        :raises SettingsError: if apprise does not support the URL.
        """
        import apprise

        url = self.url
        if message_id and self._scheme in _WITH_HEADERS:
            url += f"{'&' if '?' in url else '?'}+Idempotency-Key={message_id}"
        service = apprise.Apprise.instantiate(url)
        if not service:
            raise SettingsError(
                f"{self.name}: apprise does not support this {self._scheme} URL; expected a URL"
                " from its documentation.",
                next_step="Correct it in LAKEHOUSE_ALERT_URLS or in alerts.toml.",
            )
        return service


@dataclass(frozen=True)
class SnsSink:
    """An SNS topic, with the credentials of the AWS chain."""

    topic: str
    settings: Settings

    @property
    def name(self) -> str:
        """A hash of the topic, which contains the account."""
        return name_of(self.topic)

    def send(self, alert: Alert) -> None:
        """Publish the message with attributes by which subscriptions can filter."""
        import boto3
        from botocore.config import Config

        client = boto3.client(
            "sns",
            region_name=self.topic.split(":")[3] or self.settings.region,
            endpoint_url=self.settings.endpoint_url,
            config=Config(connect_timeout=4, read_timeout=4, retries={"total_max_attempts": 1}),
        )
        attributes = {
            "severity": alert.severity,
            "saying": alert.saying,
            "alert_id": alert.alert_id,
            "table": alert.table,
            "lakehouse": self.settings.title,
        }
        # A subject is one line of ASCII.
        subject = alert.title.encode("ascii", "replace").decode().replace("\n", " ")
        client.publish(
            TopicArn=self.topic,
            Subject=subject[:_LONGEST_SUBJECT],
            Message=f"{alert.title}\n{alert.text}\nLakehouse {self.settings.title}",
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
                if value
            },
        )


def open_sinks(
    settings: Settings, urls: Iterable[str], logger: logging.Logger
) -> dict[str, Sink]:
    """Return the record, the log and the services by name; connects to none."""
    sinks: list[Sink] = [record_of(settings), LogSink(logger, settings.title)]
    sinks += [_sink(settings, url) for url in urls]
    return {sink.name: sink for sink in sinks}


def record_of(settings: Settings) -> FileSink:
    """Return the record of all alerts."""
    return FileSink(settings.home / FILE_NAME, settings.title)


def read_alerts(settings: Settings) -> list[Alert]:
    """Return the recorded messages, oldest first; incomplete lines are skipped."""
    file, alerts = record_of(settings).path, list[Alert]()
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    # A name can contain a line separator of Python, such as U+2028.
    for line in text.split("\n"):
        with suppress(ValueError):
            alerts.append(type_adapter(Alert).validate_json(line))
    return alerts


def check_url(settings: Settings, url: str) -> None:
    """Validate the URL of a recipient without connecting to it.

    :raises SettingsError: if it is neither a URL of apprise nor the ARN of an SNS topic.
    """
    sink = _sink(settings, url)
    if isinstance(sink, AppriseSink):
        sink.service()
    elif not _TOPIC.match(url):
        raise SettingsError(
            f"{sink.name} is not the ARN of a topic; expected arn:aws:sns:REGION:ACCOUNT:NAME."
        )


def describe_failure(error: Exception) -> str:
    """Describe why a delivery failed; the text of a library can contain a URL with a secret."""
    return str(error) if isinstance(error, LakehouseError) else type(error).__name__


def _sink(settings: Settings, url: str) -> Sink:
    if url.startswith("arn:"):
        return SnsSink(url, settings)
    return AppriseSink(url, settings.title)


def _notify_type(apprise: Any, alert: Alert) -> Any:
    types = apprise.NotifyType
    if alert.saying == "recovered":
        return types.SUCCESS
    if alert.saying == "test":
        return types.INFO
    return types.FAILURE if alert.severity == "error" else types.WARNING
