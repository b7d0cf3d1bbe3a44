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
    """Return the `DAGSTER_HOME` of a home; creates it with `dagster.yaml` unless it exists."""
    keep_private()
    settings.make_home()
    home = settings.dagster_home
    home.mkdir(exist_ok=True)
    if not (home / "dagster.yaml").exists():
        replace_text(home / "dagster.yaml", _TEMPLATE.read_text(encoding="utf-8"))
    return home


@contextmanager
def open_instance(settings: Settings) -> "Iterator[dg.DagsterInstance]":
    """Open the instance of a home, regardless of the environment variable `DAGSTER_HOME`.

    Its runs belong to the code location that `lakehouse dev`, `workspace.yaml` and
    `pyproject.toml` name: sensors that are stopped there would run under another name.
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
