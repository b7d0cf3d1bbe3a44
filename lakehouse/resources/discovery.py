"""What a package of assets declares, found by importing its modules: adding a table is adding a file."""

import importlib
import pkgutil
from collections.abc import Collection, Iterable, Iterator
from types import ModuleType
from typing import TypeVar

import dagster as dg

from lakehouse.errors import DeclarationError, LakehouseError
from lakehouse.iceberg.table import IcebergTable
from lakehouse.resources.asset_inputs import inputs_of
from lakehouse.resources.asset_specs import quarantine_spec
from lakehouse.resources.keys import table_name

T = TypeVar("T")


def modules_of(package: str) -> list[ModuleType]:
    """Import a package and all modules below it, sorted by name.

    :raises DeclarationError: names the module that cannot be imported, and why.
    """
    root = importlib.import_module(package)
    names = [found.name for found in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [root, *map(_imported, sorted(names))]


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except LakehouseError as error:
        raise DeclarationError(f"In {name}: {error}") from error
    except Exception as error:
        raise DeclarationError(
            f"{name} cannot be imported: {type(error).__name__}: {str(error).rstrip('.')}.",
            next_step="Correct that file; `lakehouse plan --verbose` shows the traceback.",
        ) from error


def values_of(modules: Iterable[ModuleType], kind: type[T]) -> list[T]:
    """Return the values of a type that the modules hold, each once."""
    found: list[T] = []
    for value in (value for module in modules for value in vars(module).values()):
        if isinstance(value, kind) and not any(value is other for other in found):
            found.append(value)
    return found


def declared_tables(modules: Iterable[ModuleType]) -> dict[str, IcebergTable]:
    """Return the tables that the modules declare, by name; the quarantine of each comes after it.

    :raises DeclarationError: when two modules declare one table.
    """
    found: dict[str, tuple[IcebergTable, str]] = {}
    for module in modules:
        for table in values_of([module], IcebergTable):
            known, where = found.setdefault(table.name, (table, module.__name__))
            if known is not table:
                raise DeclarationError(
                    f"{table.name} is declared twice, in {where} and in {module.__name__}; expected one declaration.",
                    next_step="Give one of them another name, in its TABLE and where it reads and writes.",
                )
    return {table.name: table for declared, _ in found.values() for table in _with_quarantine(declared)}


def declared_assets(modules: Iterable[ModuleType]) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the modules' assets, those that no run makes too, and for each quarantine where refused rows go.

    :raises DeclarationError: when an asset reads a table that nobody declares.
    """
    modules = list(modules)
    quarantines = (quarantine_spec(table) for table in values_of(modules, IcebergTable))
    specs = [*values_of(modules, dg.AssetSpec), *(spec for spec in quarantines if spec)]
    assets = values_of(modules, dg.AssetsDefinition)
    computed = [spec for asset in assets for spec in asset.specs]
    _check_inputs(computed, {table_name(spec.key) for spec in (*computed, *specs)})
    return [*assets, *specs]


def _check_inputs(computed: Iterable[dg.AssetSpec], known: Collection[str]) -> None:
    for spec in computed:
        for name, given in inputs_of(spec.metadata).items():
            if given.table not in known:
                raise DeclarationError(
                    f"{table_name(spec.key)}: input {name} is {given.table}, which nothing declares; "
                    f"expected one of {', '.join(sorted(known))}.",
                    next_step="Correct the name; a table that is made elsewhere is declared by a `dagster.AssetSpec`.",
                )


def _with_quarantine(table: IcebergTable) -> Iterator[IcebergTable]:
    yield table
    if table.quarantine:
        yield table.quarantine
