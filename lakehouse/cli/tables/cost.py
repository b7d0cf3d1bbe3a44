"""`lakehouse cost`: the monthly storage cost of tables."""

from dataclasses import asdict
from pathlib import Path

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named
from lakehouse.cli.output.printing import count, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.errors import LakehouseError
from lakehouse.storage.byte_sizes import size_text

_NUMBERS = ("live", "historical", "deleted", "orphaned", "metadata", "$ a month")


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
    """Show the monthly price of storing tables on S3.

    Without names: all existing tables. Requests and computation are not included; AWS Cost
    Explorer shows them.
    """
    from lakehouse.upkeep.table_cost import PRICES, measure_storage, read_price
    from lakehouse.upkeep.upkeep_run import with_cached_locations

    price = read_price(price_file or PRICES)
    tables = [state.existing_table(name) for name in dict.fromkeys(names)]
    engine = state.engine
    if not names:
        engine = with_cached_locations(engine, state.project.upkept())
        tables = engine.catalog.tables()
    stored = {}
    with state.progress(f"Measuring {count(len(tables), 'table')}"):
        for name, result in measure_storage(engine, tables):
            if not isinstance(result, LakehouseError):
                stored[name] = result
            elif names:
                raise result
            else:
                click.echo(f"{name} is not counted: {result}", err=True)
    dollars = {name: storage.dollars(price) for name, storage in stored.items()}
    if form == "json":
        print_records(
            {
                "table": name,
                **asdict(storage),
                "total_bytes": storage.total_bytes,
                "dollars_a_month": dollars[name],
            }
            for name, storage in stored.items()
        )
        return
    rows = []
    for name, storage in stored.items():
        sizes = asdict(storage).values()
        cells = ["unknown" if size is None else size_text(size) for size in sizes]
        rows.append([name, *cells, f"{dollars[name]:.4f}"])
    footer = (
        f"{count(len(rows), 'table')}, ${sum(dollars.values()):,.4f} a month;"
        f" ${price.price} per GB-month as of {price.as_of}"
    )
    click.echo(table(columns_named(["table", *_NUMBERS], _NUMBERS), rows, footer=footer))
