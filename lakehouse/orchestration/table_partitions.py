"""Time partitions of a table as the partitions definition of its asset."""

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.time_windows import Unit

_KINDS: dict[Unit, tuple[type[dg.TimeWindowPartitionsDefinition], str]] = {
    "hour": (dg.HourlyPartitionsDefinition, "%Y-%m-%d-%H:%M"),
    "day": (dg.DailyPartitionsDefinition, "%Y-%m-%d"),
    "month": (dg.MonthlyPartitionsDefinition, "%Y-%m-%d"),
}


def table_partitions(table: IcebergTable) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions of a table that is written `by_hour`, `by_day` or `by_month`,
    including the current one.

    `@iceberg_asset` uses them by default; a plain asset declares `partitions_def=`.

    :raises DeclarationError: the table is not written by time windows.
    """
    windows = table.windows
    if windows is None:
        raise DeclarationError(
            f"{table.name} is written by {type(table.write).__name__} without windows of time;"
            " expected by_hour(…), by_day(…) or by_month(…).",
            next_step="Say write=by_day(…) in its declaration.",
        )
    kind, format_of_start = _KINDS[windows.unit]
    return kind(  # type: ignore[call-arg]
        start_date=windows.since.strftime(format_of_start),
        timezone=windows.time_zone,
        end_offset=1,
    )


def asset_partitions(
    table: IcebergTable, given: dg.PartitionsDefinition | None
) -> dg.PartitionsDefinition | None:
    """Return the partitions definition of a table's asset, explicit or from the table.

    :raises DeclarationError: both are set.
    """
    if table.windows is None:
        return given
    if given is not None:
        raise DeclarationError(
            f"{table.name} is written by each {table.windows.unit}, and its asset has a"
            " partitions_def too; expected one of them.",
            next_step="Leave out partitions_def.",
        )
    return table_partitions(table)
