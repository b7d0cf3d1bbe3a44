"""Dagster's instance: what it remembers of runs, checks and ticks, in the home, beside the
tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import keep_private, replace_text

if TYPE_CHECKING:
    import dagster as dg

_TEMPLATE = Path(__file__).with_name("dagster.yaml")
_STORAGES = {"storage", "event_log_storage"}


def dagster_home(settings: Settings) -> Path:
    """Return the folder of Dagster's instance, with its `dagster.yaml`; one that is there is
    left as it is.

    Dagster's services are given this as `DAGSTER_HOME`.
    """
    keep_private()
    settings.make_home()
    home = settings.dagster_home
    home.mkdir(exist_ok=True)
    if not (home / "dagster.yaml").exists():
        replace_text(home / "dagster.yaml", _TEMPLATE.read_text(encoding="utf-8"))
    return home


@contextmanager
def open_instance(settings: Settings) -> "Iterator[dg.DagsterInstance]":
    """Open the instance of this home, whatever `DAGSTER_HOME` says; runs that are made on it
    belong to the code location, which `lakehouse dev` names as the module of the definitions;
    `workspace.yaml` and `pyproject.toml` say the same, since where a name is another, what was
    switched off there is on again.
    """
    from dagster import DagsterInstance

    from lakehouse.orchestration.dagster_internals import runs_of_code_location
    from lakehouse.orchestration.event_log import keep_scripts, kept_open

    folder = dagster_home(settings)
    keep_scripts()
    # `local_temp` is the public way to a persistent instance in a given folder.
    with (
        kept_open(folder),
        DagsterInstance.local_temp(str(folder), overrides=_overrides(folder)) as instance,
        runs_of_code_location(instance, settings.definitions),
    ):
        yield instance


def _overrides(folder: Path) -> dict[str, Any]:
    """Return what differs in commands from what the folder's `dagster.yaml` says; a storage
    that it names is kept.
    """
    from lakehouse.orchestration.dagster_internals import NO_COMPUTE_LOGS

    return {"compute_logs": NO_COMPUTE_LOGS, **own_event_log(folder)}


def own_event_log(folder: Path) -> dict[str, Any]:
    """Return the configuration of the event log that takes less time than Dagster's own; nothing
    where the folder's `dagster.yaml` names a storage.
    """
    import yaml

    file = folder / "dagster.yaml"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if _STORAGES & set(yaml.safe_load(text) or {}):
        return {}
    events = {
        "module": "lakehouse.orchestration.event_log",
        "class": "EventLog",
        "config": {"base_dir": str(folder / "history" / "runs")},
    }
    return {"event_log_storage": events}
