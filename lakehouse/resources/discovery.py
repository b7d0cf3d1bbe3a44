"""What a package of assets declares, found by importing its modules: adding a table is adding a file."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TypeVar

import dagster as dg

from lakehouse.iceberg.table import IcebergTable
from lakehouse.resources.asset_specs import quarantine_spec

T = TypeVar("T")


def modules_of(package: str) -> list[ModuleType]:
    """Import a package and all modules below it, sorted by name."""
    root = importlib.import_module(package)
    names = [found.name for found in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [root, *(importlib.import_module(name) for name in sorted(names))]


def values_of(modules: Iterable[ModuleType], kind: type[T]) -> list[T]:
    """Return the values of a type that the modules hold, each once."""
    found: list[T] = []
    for value in (value for module in modules for value in vars(module).values()):
        if isinstance(value, kind) and not any(value is other for other in found):
            found.append(value)
    return found


def declared_tables(modules: Iterable[ModuleType]) -> dict[str, IcebergTable]:
    """Return the tables that the modules declare, by name; the quarantine of each comes after it."""
    return {table.name: table for declared in values_of(modules, IcebergTable) for table in _with_quarantine(declared)}


def declared_assets(modules: Iterable[ModuleType]) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the modules' assets, those that no run makes too, and for each quarantine where refused rows go."""
    modules = list(modules)
    quarantines = (quarantine_spec(table) for table in values_of(modules, IcebergTable))
    made_elsewhere = values_of(modules, dg.AssetSpec)
    return [*values_of(modules, dg.AssetsDefinition), *made_elsewhere, *(spec for spec in quarantines if spec)]


def _with_quarantine(table: IcebergTable) -> Iterator[IcebergTable]:
    yield table
    if table.quarantine:
        yield table.quarantine
