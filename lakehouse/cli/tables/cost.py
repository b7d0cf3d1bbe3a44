"""`lakehouse cost`: the monthly cost of tables."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import count, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.errors import LakehouseError
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.upkeep.table_cost import Prices, TableCost, UpkeepCost

_BYTES = ("live", "historical", "deleted", "orphaned", "metadata")
_BYTES_OF_30_DAYS = ("written", "rewritten", "read")
_DOLLARS = ("$ storage", "$ requests", "$ upkeep", "$ a month")
_NUMBERS = (*_BYTES, *_BYTES_OF_30_DAYS, *_DOLLARS)
_UPKEEP_NUMBERS = ("read", "rewritten", "seconds", "DPU-hours", "$")


@command("cost")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option(
    "--prices",
    "price_file",
    type=click.Path(path_type=Path),
    help="TOML file with prices; default: the prices of this package.",
)
@table_or_json
def cost(state: State, names: tuple[str, ...], price_file: Path | None, form: str) -> None:
    """Show what tables cost a month, as if they were on S3.

    Without names: all existing tables. With names, the cost of each upkeep run is included. Bytes
    written, rewritten and read are those recorded in the last 30 days.
    """
    from lakehouse.upkeep.table_cost import PRICES, measure_costs, read_prices
    from lakehouse.upkeep.upkeep_run import with_cached_locations

    prices = read_prices(price_file or PRICES)
    tables = [state.existing_table(name) for name in dict.fromkeys(names)]
    upkept, engine = state.project.upkept(), state.engine
    if not names:
        engine = with_cached_locations(engine, upkept)
        tables = engine.catalog.tables()
    costs = []
    with state.progress(f"Measuring {count(len(tables), 'table')}"):
        for name, result in measure_costs(engine, upkept, tables, prices):
            if not isinstance(result, LakehouseError):
                costs.append(result)
            elif names:
                raise result
            else:
                click.echo(f"{name} is not counted: {result}", err=True)
    if form == "json":
        print_records(map(_record, costs))
        return
    click.echo(_costs_table(costs, prices))
    if names:
        click.echo(_upkeep_table(costs))


def _costs_table(costs: "Sequence[TableCost]", prices: "Prices") -> str:
    total = sum(cost.dollars for cost in costs)
    footer = (
        f"{count(len(costs), 'table')}, ${total:,.4f} a month;"
        f" ${prices.dollars_per_gb_month.price} per GB-month as of"
        f" {prices.dollars_per_gb_month.as_of}"
    )
    columns = columns_named(["table", *_NUMBERS], _NUMBERS)
    return table(columns, [_cells(cost) for cost in costs], footer=footer)


def _cells(cost: "TableCost") -> list[str]:
    storage, traffic = cost.storage, cost.traffic
    sizes = [
        storage.live_bytes,
        storage.historical_bytes,
        storage.deleted_bytes,
        storage.orphaned_bytes,
        storage.metadata_bytes,
        traffic.written_bytes,
        cost.rewritten_bytes,
        traffic.read_bytes,
    ]
    dollars = [cost.storage_dollars, cost.request_dollars, cost.upkeep_dollars, cost.dollars]
    return [
        cost.table,
        *("unknown" if number is None else size_text(number) for number in sizes),
        *(f"{amount:.4f}" for amount in dollars),
    ]


def _upkeep_table(costs: "Sequence[TableCost]") -> str:
    columns = columns_named(["table", "ended", "steps", *_UPKEEP_NUMBERS], _UPKEEP_NUMBERS)
    rows = []
    for cost in costs:
        for run in cost.upkeep:
            rows.append([cost.table, *_upkeep_cells(run)])
    return table(columns, rows, footer=f"{count(len(rows), 'upkeep run')} in 30 days")


def _upkeep_cells(run: "UpkeepCost") -> list[str]:
    return [
        utc_seconds(run.ended_at),
        ", ".join(run.steps),
        size_text(run.read_bytes),
        size_text(run.rewritten_bytes),
        f"{run.seconds:.1f}",
        f"{run.dpu_hours:.4f}",
        f"{run.dollars:.4f}",
    ]


def _record(cost: "TableCost") -> dict[str, Any]:
    return {
        "table": cost.table,
        **asdict(cost.storage),
        "total_bytes": cost.storage.total_bytes,
        "written_bytes_30_days": cost.traffic.written_bytes,
        "rewritten_bytes_30_days": cost.rewritten_bytes,
        "read_bytes_30_days": cost.traffic.read_bytes,
        "puts_30_days": cost.traffic.puts,
        "gets_30_days": cost.traffic.gets,
        "storage_dollars_a_month": cost.storage_dollars,
        "request_dollars_30_days": cost.request_dollars,
        "upkeep_dollars_30_days": cost.upkeep_dollars,
        "dollars_a_month": cost.dollars,
        "upkeep": [asdict(run) for run in cost.upkeep],
    }
