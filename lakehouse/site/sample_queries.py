"""How a table is read in five engines, to copy and run."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.iceberg.metadata.catalog import CATALOG_NAME
from lakehouse.site.facts import TableFacts
from lakehouse.tables.quoting import identifier

_MOST_COLUMNS = 4
_ROWS = 10


@dataclass(frozen=True)
class SampleQuery:
    """A query of one engine, and what it needs."""

    engine: str
    note: str
    text: str


def sample_queries(table: TableFacts, catalog_uri: str) -> tuple[SampleQuery, ...]:
    """Return queries of some rows of a table; columns about people are left out.

    :param catalog_uri: where PyIceberg opens the catalog; empty for Glue.
    """
    columns = [column.name for column in table.columns if not column.personal]
    columns = columns[:_MOST_COLUMNS]
    load = _load(table.name, catalog_uri)
    return (
        SampleQuery(
            "Spark",
            "SQL, as `lakehouse sql` takes it too.",
            _sql(columns, identifier(CATALOG_NAME, *table.name.split("."))),
        ),
        SampleQuery(
            "Athena and Trino", _athena_note(table, catalog_uri), _athena(table, columns)
        ),
        SampleQuery(
            "DuckDB",
            "Python; its Iceberg extension reads the files by itself.",
            _duckdb(columns, load),
        ),
        SampleQuery("PyIceberg and pandas", "Python.", _pandas(columns, load)),
        SampleQuery("Polars", "Python.", _polars(columns, load)),
    )


def _sql(columns: Sequence[str], name: str) -> str:
    chosen = ", ".join(identifier(column) for column in columns) or "*"
    return f"SELECT {chosen}\nFROM {name}\nLIMIT {_ROWS}"


def _athena_note(table: TableFacts, catalog_uri: str) -> str:
    if catalog_uri:
        return "SQL, where the catalog is AWS Glue; this lakehouse has one on this machine."
    if (table.format_version or 0) > 2:
        return "SQL. Athena does not read format version 3, which this table has."
    return "SQL."


def _athena(table: TableFacts, columns: Sequence[str]) -> str:
    chosen = ", ".join(map(_in_double_quotes, columns)) or "*"
    name = ".".join(map(_in_double_quotes, table.name.split(".")))
    return f"SELECT {chosen}\nFROM {name}\nLIMIT {_ROWS}"


def _in_double_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _load(name: str, catalog_uri: str) -> str:
    if catalog_uri:
        opened = (
            "from pyiceberg.catalog.sql import SqlCatalog\n\n"
            f"catalog = SqlCatalog({CATALOG_NAME!r}, uri={catalog_uri!r})\n"
        )
    else:
        opened = (
            "from pyiceberg.catalog import load_catalog\n\n"
            f'catalog = load_catalog({CATALOG_NAME!r}, type="glue")\n'
        )
    return f"{opened}table = catalog.load_table({tuple(name.split('.'))!r})\n"


def _duckdb(columns: Sequence[str], load: str) -> str:
    chosen = ", ".join(map(_in_double_quotes, columns)) or "*"
    query = f"SELECT {chosen} FROM iceberg_scan(?) LIMIT {_ROWS}"
    return (
        f"import duckdb\n{load}"
        "duck = duckdb.connect()\n"
        'duck.install_extension("iceberg")\n'
        'duck.load_extension("iceberg")\n'
        f"query = {query!r}\n"
        "print(duck.execute(query, [table.metadata_location]).fetchall())"
    )


def _pandas(columns: Sequence[str], load: str) -> str:
    chosen = f"selected_fields={tuple(columns)!r}, " if columns else ""
    return f"{load}print(table.scan({chosen}limit={_ROWS}).to_pandas())"


def _polars(columns: Sequence[str], load: str) -> str:
    chosen = f".select({list(columns)!r})" if columns else ""
    return (
        f"import polars as pl\n{load}"
        f"print(pl.scan_iceberg(table){chosen}.head({_ROWS}).collect())"
    )
