"""Finds the declarations in a package by importing its modules."""

import importlib
import pkgutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

import dagster as dg

from lakehouse.errors import DeclarationError, LakehouseError
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.asset_specs import inputs_of, quarantine_spec
from lakehouse.orchestration.functions.function_code import file_place, frames_of
from lakehouse.orchestration.load_validation import check_columns, check_subjects, sources_of
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import meant_name
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.upkeep import Upkeep

T = TypeVar("T")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def modules_of(package: str) -> list[ModuleType]:
    """Import a package and all its submodules, sorted by name.

    :raises DeclarationError: the package does not exist, or a file cannot be imported; names
        the file, the line and the cause.
    """
    root = _root(package)
    names = [module.name for module in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [root, *(imported(name, package) for name in sorted(names))]


def _root(package: str) -> ModuleType:
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if not f"{package}.".startswith(f"{error.name}."):
            raise
        raise _no_package(package) from error
    if not hasattr(root, "__path__"):
        raise _no_package(package)
    return root


def _no_package(package: str) -> DeclarationError:
    return DeclarationError(
        f"There is no package {package}; expected the one of the assets, a folder of Python files.",
        next_step='Correct the name in Project("…"), or make the folder.',
    )


def imported(name: str, package: str) -> ModuleType:
    """Import a module.

    :param package: the package of the project; errors name the file and line in it that failed.
    :raises DeclarationError: it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except LakehouseError as error:
        raise DeclarationError(f"In {_failed_at(error, name, package)}: {error}") from error
    except Exception as error:
        raise DeclarationError(
            f"{_failed_at(error, name, package)} cannot be imported: {_cause(error)}.",
            next_step="Correct that file; `lakehouse plan --verbose` shows the traceback.",
        ) from error


def _failed_at(error: Exception, name: str, package: str) -> str:
    """Return the file and line of a failed import, which can be in another module."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return file_place(
            error.filename, _module_of(error.filename, package) or name, error.lineno
        )
    below = [
        frame
        for frame in frames_of(error.__traceback__)
        if f"{frame[0]}.".startswith(f"{package}.")
    ]
    if not below:
        return name
    module, file, line = below[-1]
    return file_place(file, module, line)


def _module_of(file: str, package: str) -> str | None:
    for root in map(Path, getattr(sys.modules.get(package), "__path__", ())):
        if Path(file).is_relative_to(root):
            return ".".join([package, *Path(file).relative_to(root).with_suffix("").parts])
    return None


def _cause(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split()).rstrip('.')}"


def values_of(modules: Iterable[ModuleType], kind: type[T]) -> list[T]:
    """Return the module attributes of a type, without duplicates."""
    values: list[T] = []
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, kind) and not any(value is other for other in values):
                values.append(value)
    return values


def declared_tables(modules: Iterable[ModuleType]) -> dict[str, IcebergTable]:
    """Return the declared tables by name, each followed by its quarantine.

    The upkeep policy of the layer is applied.

    :raises DeclarationError: a table is declared twice; names both files.
    """
    modules = list(modules)
    declared = _each_once(
        modules, IcebergTable, "Give one of them another name, in its TABLE and where it reads."
    )
    quarantines = {
        table.quarantine.name: name for name, table in declared.items() if table.quarantine
    }
    twice = sorted(quarantines.keys() & declared.keys())
    if twice:
        raise DeclarationError(
            f"{twice[0]} is declared in {_place(modules, declared[twice[0]])}, and is the"
            f" quarantine of {quarantines[twice[0]]} too; expected one table of a name.",
            next_step=(
                "Give one of them another name; quarantine_name=… is that of a quarantine."
            ),
        )
    layers = _layer_upkeep(modules)
    all_tables: dict[str, IcebergTable] = {}
    for table in declared.values():
        if table.namespace in layers:
            table = replace(table, upkeep=table.upkeep.over(layers[table.namespace]))
        for part in _with_quarantine(table):
            all_tables[part.name] = part
    return all_tables


def _layer_upkeep(modules: Iterable[ModuleType]) -> dict[str, Upkeep]:
    """Return the upkeep policy of each layer: `UPKEEP` in the package with the layer's name."""
    layers = {}
    for module in modules:
        upkeep = getattr(module, "UPKEEP", None)
        if hasattr(module, "__path__") and isinstance(upkeep, Upkeep):
            layers[module.__name__.rpartition(".")[2]] = upkeep
    return layers


def declared_by_name(modules: Iterable[ModuleType], kind: type[N]) -> dict[str, N]:
    """Return declarations of a type, such as feeds, by name.

    :raises DeclarationError: a name is declared twice; names both files.
    """
    return _each_once(list(modules), kind, "Give one of them another name.")


def _each_once(modules: Sequence[ModuleType], kind: type[N], next_step: str) -> dict[str, N]:
    declared: dict[str, N] = {}
    for value in values_of(modules, kind):
        known = declared.setdefault(value.name, value)
        if known is not value:
            raise DeclarationError(
                f"{value.name} is declared twice, in {_place(modules, known)} and in"
                f" {_place(modules, value)}; expected one declaration.",
                next_step=next_step,
            )
    return declared


def _place(modules: Iterable[ModuleType], value: object) -> str:
    """Return the modules that declare or import a value."""
    names = []
    for module in modules:
        if any(other is value for other in vars(module).values()):
            names.append(module.__name__)
    return ", ".join(names)


def declared_assets(modules: Iterable[ModuleType]) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return all assets, external assets and quarantine assets of the modules.

    :raises DeclarationError: an asset or a rule reads an undeclared table or column, two
        functions compute one table, or a table with personal data declares no subject.
    """
    modules = list(modules)
    tables = declared_tables(modules)
    quarantines = (quarantine_spec(table) for table in values_of(modules, IcebergTable))
    specs = [*values_of(modules, dg.AssetSpec), *(spec for spec in quarantines if spec)]
    assets = values_of(modules, dg.AssetsDefinition)
    computed = [spec for asset in assets for spec in asset.specs]
    known = {table_name(spec.key) for spec in (*computed, *specs)}
    _check_inputs(computed, known, tables)
    for table in tables.values():
        _check_rules(table, tables, known)
    _check_computed_once(modules, assets)
    feeds = declared_by_name(modules, Feed)
    check_subjects(tables, sources_of(computed, tables), feeds.values())
    return [*assets, *specs]


def table_sources(modules: Iterable[ModuleType]) -> dict[str, set[str]]:
    """Return the upstream tables of each table; the source of a quarantine is its table."""
    modules = list(modules)
    computed: list[dg.AssetSpec] = []
    for asset in values_of(modules, dg.AssetsDefinition):
        computed.extend(asset.specs)
    return sources_of(computed, declared_tables(modules))


def _check_computed_once(
    modules: Sequence[ModuleType], assets: Iterable[dg.AssetsDefinition]
) -> None:
    computing: dict[str, dg.AssetsDefinition] = {}
    for asset in assets:
        for name in map(table_name, asset.keys):
            known = computing.setdefault(name, asset)
            if known is not asset:
                raise DeclarationError(
                    f"{name} is computed twice, in {_place(modules, known)} and in"
                    f" {_place(modules, asset)}; expected one function.",
                    next_step="Give one of them a table of its own.",
                )


def _check_rules(
    table: IcebergTable, declared: Mapping[str, IcebergTable], known: Collection[str]
) -> None:
    for rule in table.rules:
        for name, columns in rule.read_columns.items():
            if name not in known and name not in declared:
                raise _undeclared(f"{table.name}: rule {rule.name} reads {name}", name, known)
            there = declared[name].column_names if name in declared else columns
            unknown = [column for column in columns if column not in there]
            if unknown:
                raise DeclarationError(
                    f"{table.name}: rule {rule.name} reads {', '.join(unknown)} of {name}; "
                    f"{meant_name(unknown[0], there)}"
                )


def _check_inputs(
    computed: Iterable[dg.AssetSpec],
    known: Collection[str],
    declared: Mapping[str, IcebergTable],
) -> None:
    for spec in computed:
        owner = table_name(spec.key)
        for name, read in inputs_of(spec.metadata).items():
            if read.table not in known:
                raise _undeclared(f"{owner}: input {name} is {read.table}", read.table, known)
            if read.table in declared:
                check_columns(declared.get(owner), owner, name, read, declared[read.table])


def _undeclared(use: str, table: str, known: Collection[str]) -> DeclarationError:
    return DeclarationError(
        f"{use}, which nothing declares; {meant_name(table, known)}",
        next_step="Correct the name; declare a table that is made elsewhere by a"
        " `dagster.AssetSpec`.",
    )


def _with_quarantine(table: IcebergTable) -> Iterator[IcebergTable]:
    yield table
    if table.quarantine:
        yield table.quarantine
