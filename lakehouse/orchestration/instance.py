"""Dagster's instance in the home: runs, checks and ticks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import keep_private, replace_text

if TYPE_CHECKING:
    import dagster as dg

_TEMPLATE = Path(__file__).with_name("dagster.yaml")


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

    from lakehouse.orchestration.dagster_internals import NO_COMPUTE_LOGS, runs_of_code_location

    folder = dagster_home(settings)
    # `local_temp` is the public way to a persistent instance in a given folder.
    with (
        DagsterInstance.local_temp(
            str(folder), overrides={"compute_logs": NO_COMPUTE_LOGS}
        ) as instance,
        runs_of_code_location(instance, settings.definitions),
    ):
        yield instance
