"""`sql_asset`: a declared table as an asset that a SQL file computes."""

import inspect
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input, declared_inputs
from lakehouse.orchestration.functions.function_code import file_place
from lakehouse.orchestration.functions.sql_function import SqlFunction
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import IcebergTable


def sql_asset(
    table: IcebergTable,
    *,
    inputs: Mapping[str, Input | IcebergTable],
    partitions_def: dg.PartitionsDefinition | None = None,
    file: str | None = None,
) -> dg.AssetsDefinition:
    """Make an asset of the SELECT in a SQL file.

    The query can read only its inputs, as tables of their names: `FROM fruits` is the input
    `fruits`. Otherwise the same as a function with `iceberg_asset`. Assign the asset to a name
    in its module.

    :param table: the table to compute.
    :param inputs: inputs by their names in the query, see `iceberg_asset`.
    :param partitions_def: see `iceberg_asset`.
    :param file: file next to the calling module; default: the module's name with `.sql`.
    :raises DeclarationError: names the file, the line, and the error in it or in the inputs.
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
