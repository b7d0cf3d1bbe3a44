"""A declared table as a Dagster asset that a query in a file computes."""

import inspect
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input, declared_inputs
from lakehouse.orchestration.code_locations import file_place
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.sql_function import SqlFunction
from lakehouse.tables.table import IcebergTable


def sql_asset(
    table: IcebergTable,
    *,
    inputs: Mapping[str, Input | IcebergTable],
    partitions_def: dg.PartitionsDefinition | None = None,
    file: str | None = None,
) -> dg.AssetsDefinition:
    """Make an asset of the query that computes a table, a SELECT in a file of its own.

    The query reads its inputs as tables of their names, and nothing else: `FROM fruits` is the
    input `fruits`. All else is as for a function of `iceberg_asset`. The asset has to be given a
    name in its module, as a function has one.

    :param table: the table that it computes.
    :param inputs: what the query reads, by the names that it reads them by, see `iceberg_asset`.
    :param partitions_def: see `iceberg_asset`.
    :param file: the file beside the module that calls this; by default that of the module's name
        which ends with `.sql`.
    :raises DeclarationError: names the file, its line, and what is wrong with it or with the
        inputs.
    """
    here = inspect.currentframe()
    caller = here.f_back if here else None
    names = caller.f_globals if caller else {}
    if "__file__" not in names:
        raise DeclarationError(
            f"{table.name}: sql_asset was called where there is no file; expected a module that"
            " stands beside the query."
        )
    module = Path(names["__file__"])
    path = module.with_name(file) if file else module.with_suffix(".sql")
    declared = declared_inputs(table.name, inputs)
    place = file_place(str(path), names["__name__"], 1).rpartition(":")[0]
    query = SqlFunction(table.name, path, place, declared)
    return iceberg_asset(table, inputs=declared, partitions_def=partitions_def)(query)
