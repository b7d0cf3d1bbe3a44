"""The record of all alerts: `alerts.jsonl` in the home, one message a line."""

import json

from lakehouse.monitoring.earlier_field_names import rename_fields
from lakehouse.monitoring.sinks import FILE_NAME
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings


def read_alerts(settings: Settings) -> list[Alert]:
    """Return the messages of the record, oldest first; half a line of a process that was killed
    is none.
    """
    file = settings.home / FILE_NAME
    if not file.is_file():
        return []
    alerts = []
    # A name in it may hold what Python takes for the end of a line, such as U+2028.
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        if line.startswith("{") and line.endswith("}"):
            alerts.append(Alert.from_json(rename_fields(json.loads(line))))
    return alerts
