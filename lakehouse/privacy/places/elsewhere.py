"""Places outside of the home that the lakehouse cannot reach, and their owner."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lakehouse.alerts.alert_routes import name_of, read_routes
from lakehouse.errors import SettingsError
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.settings import Settings

_STORAGES = (
    "storage",
    "run_storage",
    "event_log_storage",
    "schedule_storage",
    "compute_logs",
    "local_artifact_storage",
)
_IN_FOLDERS = ("sqlite", "Sqlite", "Local", "NoOp", "EventLog")
"""Prefixes of Dagster's storages in a folder of this machine, or without data."""


def places_elsewhere(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield Dagster's storages, and Spark servers and clusters, outside of the home."""
    file = settings.dagster_home / "dagster.yaml"
    configured = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    for name in _STORAGES:
        storage = (configured or {}).get(name)
        if isinstance(storage, Mapping):
            yield from _storage(settings, name, storage)
    if settings.spark_remote:
        # A tunnel on this machine can lead to a cluster.
        host = urlsplit(settings.spark_remote).hostname
        yield _not_reached(
            f"the Spark Connect server on {host}",
            "Its temporary folders and logs, and those of its executors, are not in the home.",
        )
    elif not settings.spark_master.startswith("local"):
        yield _not_reached(
            f"the Spark cluster of {settings.spark_master}",
            "Its temporary folders and logs are on other machines.",
        )


def sent_alerts(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield the recipients of alerts, when the record of alerts contained the person."""
    try:
        urls = read_routes(settings).urls
    except SettingsError as error:
        yield ScrubbedPlace("alerts that were sent", "not reached", why=str(error))
        return
    for url in urls:
        yield _not_reached(
            f"alerts that were sent to {name_of(url)}",
            "The record of alerts contained the person, and sent messages can too.",
        )


def _storage(
    settings: Settings, name: str, configured: Mapping[str, Any]
) -> Iterator[ScrubbedPlace]:
    """Yield a storage of a server, or with a folder outside of the home."""
    configured = configured.get("custom", configured)
    kinds = (
        {configured["class"]: configured.get("config")} if "class" in configured else configured
    )
    for kind, config in kinds.items():
        folder = (config or {}).get("base_dir")
        if kind.startswith(_IN_FOLDERS) and _is_in_home(settings, folder):
            continue
        location = f" in {folder}" if isinstance(folder, str) else ""
        yield _not_reached(
            f"{name} of Dagster: {kind}{location}",
            "dagster.yaml puts it outside of the home, with runs, events, checks or logs.",
        )


def _is_in_home(settings: Settings, folder: Any) -> bool:
    """Whether a folder is below the home, as it is by default; unknown from the environment."""
    if folder is None:
        return True
    return isinstance(folder, str) and Path(folder).resolve().is_relative_to(
        settings.home.resolve()
    )


def _not_reached(place: str, why: str) -> ScrubbedPlace:
    return ScrubbedPlace(place, "not reached", why=why, owner="who operates it")
