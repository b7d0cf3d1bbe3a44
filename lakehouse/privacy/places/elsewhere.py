"""What the lakehouse leaves outside of its home, and cannot reach: it is said whose it is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lakehouse.alerts.alert_routes import name_of, read_routes
from lakehouse.errors import SettingsError
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.runtime.folders_of_spark import folders_outside
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
"""What of Dagster's is in a folder of this machine, or nowhere."""
_SPILLS = "Its temporary folders and logs are on other machines."
_OF_A_SERVER = (
    "Its temporary folders and logs, and those of its executors, are not in the home."
)
_TOLD_TO = (
    "Spark is told to keep it outside of the home, with rows that it spilled or plans that hold"
    " values."
)
_OPERATOR = "who operates it"


def places_elsewhere(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield Dagster's storages, and Spark's clusters and folders, that are not in the home."""
    file = settings.dagster_home / "dagster.yaml"
    if file.is_file():
        configured = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        for name in _STORAGES:
            yield from _storage(settings, name, configured.get(name))
    yield from _sparks(settings)


def sent_alerts(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield where messages went of which the record had the person."""
    try:
        urls = read_routes(settings).urls
    except SettingsError as error:
        yield ScrubbedPlace("alerts that were sent", "not reached", why=str(error))
        return
    for url in urls:
        yield _not_reached(
            f"alerts that were sent to {name_of(url)}",
            "The record of alerts had the person, and messages of it may have.",
        )


def _storage(settings: Settings, name: str, configured: Any) -> Iterator[ScrubbedPlace]:
    """Yield a storage that is a server's, or whose folder is elsewhere."""
    for kind, config in _kinds(configured):
        folder = config.get("base_dir")
        if kind.startswith(_IN_FOLDERS) and _is_in_home(settings, folder):
            continue
        where = f" in {folder}" if isinstance(folder, str) else ""
        yield _not_reached(
            f"{name} of Dagster: {kind}{where}",
            "dagster.yaml keeps it outside of the home, with runs, events, checks or logs.",
        )


def _kinds(configured: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what kind of storage is configured, and how: by its class, or by a name that
    Dagster has for it.
    """
    if not isinstance(configured, Mapping):
        return
    if "class" in configured:
        yield str(configured["class"]), configured.get("config") or {}
        return
    for kind, config in configured.items():
        if kind == "custom":
            yield from _kinds(config)
        else:
            yield str(kind), config or {}


def _is_in_home(settings: Settings, folder: Any) -> bool:
    """Whether a folder is below the home; none that is named is, one that the environment names
    is not known.
    """
    if folder is None:
        return True
    return isinstance(folder, str) and Path(folder).resolve().is_relative_to(
        settings.home.resolve()
    )


def _sparks(settings: Settings) -> Iterator[ScrubbedPlace]:
    if settings.spark_remote:
        # One that answers here, maybe by a tunnel, may work on a cluster.
        host = urlsplit(settings.spark_remote).hostname
        yield _not_reached(f"the Spark Connect server on {host}", _OF_A_SERVER)
        return
    if not settings.spark_master.startswith("local"):
        yield _not_reached(f"the Spark cluster of {settings.spark_master}", _SPILLS)
    for name, folder in folders_outside(settings):
        yield _not_reached(f"{name} of Spark: {folder}", _TOLD_TO)


def _not_reached(place: str, why: str) -> ScrubbedPlace:
    return ScrubbedPlace(place, "not reached", why=why, owner=_OPERATOR)
