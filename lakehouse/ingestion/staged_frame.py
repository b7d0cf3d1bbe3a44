"""A delivery as a Spark DataFrame with the columns of its bronze table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.staging.staged_rows import HASH_LENGTH, BucketRows
from lakehouse.tables.feed import INGEST_COLUMNS, Feed
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import Column, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HASH = "_source_sha256"


def read_staged_rows(
    spark: "SparkSession", delivery: Delivery, *, added: Sequence[str] = ()
) -> "DataFrame":
    """Read the staged rows: declared, added (NULL if a file lacks them) and source columns."""
    feed = delivery.ingest.feed
    names = dict.fromkeys((*delivery.added_columns, *added), "string")
    names = {column.name: column.type for column in feed.declared_columns} | names
    columns = (*(Column(name, of_type) for name, of_type in names.items()), *INGEST_COLUMNS)
    rows, file_name_sql = delivery.ingest.rows, "_metadata.file_name"
    if "_metadata" in map(str.lower, names):
        # A column of that name hides Spark's metadata column.
        file_name_sql = "substring_index(input_file_name(), '/', -1)"
    in_files = [column for column in columns if column.name != _HASH]
    schema = ", ".join(f"{identifier(column.name)} {column.type}" for column in in_files)
    # A file that was removed since its rows were counted must be an error.
    options = {**rows.spark_options, "ignoreMissingFiles": "false"}
    staged = spark.read.schema(schema).options(**options).parquet(rows.uri)
    if is_shared(delivery):
        names_sql = ", ".join(literal(file.name) for file in delivery.files)
        staged = staged.where(f"{file_name_sql} IN ({names_sql})")
    staged = staged.selectExpr("*", f"substring({file_name_sql}, 1, {HASH_LENGTH}) AS {_HASH}")
    return staged.selectExpr(*(identifier(column.name) for column in columns))


def is_shared(delivery: Delivery) -> bool:
    """Return whether other processes can add or remove staged files."""
    return delivery.by_executors or isinstance(delivery.ingest.rows, BucketRows)


def plan_landing_table(
    feed: Feed, table: IcebergTable, catalog: Catalog, arriving: Sequence[str] = ()
) -> tuple[IcebergTable, tuple[str, ...]]:
    """Return a feed's bronze table with the columns that files added, and the names of these
    columns.

    Added columns are those in `arriving` and those in the catalog's table that the declaration
    does not name. Only a feed with `on_new_column="add"` has added columns.
    """
    if feed.on_new_column != "add":
        return table, ()
    named = {*table.column_names, *table.dropped}
    for column in table.columns:
        named.update(column.renamed_from)
    fields = catalog.load(table.name).schema().fields if catalog.has(table.name) else ()
    earlier = (field.name for field in fields if field.name not in named)
    added = tuple(dict.fromkeys((*earlier, *arriving)))
    doc = "Delivered in a file, and not declared by the feed."
    columns = (*table.columns, *(Column(name, "string", doc) for name in added))
    return replace(table, columns=columns), added
