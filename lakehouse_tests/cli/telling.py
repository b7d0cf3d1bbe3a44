"""A look at a lakehouse as its sensor takes it, in the process of a test."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.definitions import FEEDS, TABLES, defs
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alerts_sensor import detect_and_dispatch
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.orchestration.alert import Alert
from lakehouse.orchestration.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.conftest import settings_at


def look(home: Path, settings: Settings | None = None) -> list[Alert]:
    """Look once, and return what was told of it."""
    settings = settings or settings_at(home)
    before = len(read_alerts(settings))
    graph = defs.resolve_asset_graph()
    with open_instance(settings) as instance:
        context = MonitorContext(
            instance, graph, TABLES, tuple(FEEDS.values()), settings, datetime.now(UTC)
        )
        detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"))
    return read_alerts(settings)[before:]


def titles(alerts: list[Alert]) -> list[str]:
    return [alert.title for alert in alerts]
