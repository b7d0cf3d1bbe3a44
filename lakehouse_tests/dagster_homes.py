"""The empty databases of a new instance of Dagster, made once for each worker and copied.

Dagster makes three, each by the migrations of its past: a quarter of a second for each test that
opens an instance. The tests of whole commands and processes make their own.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lakehouse.orchestration.runs import instance
from lakehouse.settings import Settings

_DATABASES = ("history", "schedules")


def query(ui: Any, text: str, variables: Mapping[str, Any] | None = None) -> Any:
    """Return the answer of Dagster's GraphQL API."""
    # Its schema takes two CPU seconds to build, in each process that imports it.
    from dagster_graphql.test.utils import execute_dagster_graphql

    return execute_dagster_graphql(ui, text, variables)


class DagsterHomes:
    """Makes the folder of an instance as the project does, with the databases in it."""

    def __init__(self, template: Settings) -> None:
        self._template = template
        self._make = instance.dagster_home

    def __call__(self, settings: Settings) -> Path:
        """Return the folder of an instance; one that is there is left as it is."""
        is_new = not settings.dagster_home.exists()
        home = self._make(settings)
        if is_new and settings.home != self._template.home:
            for name in _DATABASES:
                shutil.copytree(self._databases / name, home / name)
        return home

    @property
    def _databases(self) -> Path:
        if not self._template.dagster_home.exists():
            with instance.open_instance(self._template):
                pass
        return self._template.dagster_home


def copy_databases(patch: pytest.MonkeyPatch, template: Settings) -> None:
    """Let instances of this process start with a copy of the template's databases."""
    patch.setattr(instance, "dagster_home", DagsterHomes(template))
