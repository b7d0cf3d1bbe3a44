"""The record of all alerts: `alerts.jsonl` in the home, one message a line."""

import json
from contextlib import suppress

from lakehouse.monitoring.sinks import FILE_NAME
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings


def read_alerts(settings: Settings) -> list[Alert]:
    """Return the messages of the record, oldest first; an incomplete line of a killed process is
    skipped.
    """
    file = settings.home / FILE_NAME
    if not file.is_file():
        return []
    alerts = []
    # A name in it may hold what Python takes for the end of a line, such as U+2028.
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        record = None
        with suppress(ValueError):
            record = json.loads(line)
        if isinstance(record, dict):
            alerts.append(Alert.from_json(record))
    return alerts
