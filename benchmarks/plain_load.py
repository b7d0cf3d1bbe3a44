"""A handwritten load: CSV files to a bronze table, and typed to a silver table.

Run as `python -m benchmarks.plain_load --inbox FOLDER --warehouse FOLDER --jars FILES --master URL
[--newest]`. Without lakehouse features: no validation, archive, exactly-once landing, audit or
quarantine; a second run would load all files again.
"""

import argparse

from pyspark.sql import SparkSession

COLUMNS = {
    "id": "bigint",
    "customer": "string",
    "product": "string",
    "amount": "decimal(12,2)",
    "currency": "string",
    "status": "string",
    "placed_at": "timestamp",
    "note": "string",
}
"""Columns of the files with their silver types; both ways to load use them."""
NEWEST = "row_number() OVER (PARTITION BY id ORDER BY _ingested_at DESC, _source_file DESC)"


def load(spark: SparkSession, inbox: str, *, newest: bool) -> None:
    """Append all lines to bronze and the typed lines to silver.

    :param newest: silver gets only the newest line of each id.
    """
    texts = ", ".join(f"{name} string" for name in COLUMNS)
    types = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    typed = [f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items()]
    spark.sql(
        f"CREATE TABLE lake.bronze.orders ({texts}, _source_file string,"
        " _ingested_at timestamp) USING iceberg"
    )
    spark.sql(f"CREATE TABLE lake.silver.orders ({types}, _source_file string) USING iceberg")
    lines = spark.read.schema(texts).option("header", True).csv(inbox)
    lines.selectExpr(
        "*", "_metadata.file_name AS _source_file", "current_timestamp() AS _ingested_at"
    ).writeTo("lake.bronze.orders").append()
    bronze = spark.table("lake.bronze.orders")
    if newest:
        bronze = bronze.selectExpr("*", f"{NEWEST} AS n").where("n = 1")
    rows = bronze.selectExpr(*typed, "_source_file").where("id IS NOT NULL AND amount >= 0")
    rows.writeTo("lake.silver.orders").append()


def main() -> None:
    """Load once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inbox", required=True)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--jars", required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--newest", action="store_true")
    arguments = parser.parse_args()
    spark = (
        SparkSession.builder.appName("orders")
        .master(arguments.master)
        .config("spark.jars", arguments.jars)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.executor.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", arguments.warehouse)
        .getOrCreate()
    )
    load(spark, arguments.inbox, newest=arguments.newest)
    spark.stop()


if __name__ == "__main__":
    main()
