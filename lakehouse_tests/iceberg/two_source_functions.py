"""The functions that compute a table of two sources, and the one that follows from it."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lakehouse.iceberg.write.row_versions import newest_accepted
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.iceberg.two_source_model import Shape

ID = ("_source_file", "_source_sha256", "_source_row")
ARRIVAL = [Column("_source_modified_at", "timestamp"), Column("_ingested_at", "timestamp")]


def function_of(
    table: IcebergTable, shape: Shape, *, is_corrected: bool
) -> Callable[..., DataFrame]:
    """Return the function of a table of two sources."""
    columns = [*table.column_names]
    if shape == "last file":
        columns += [column.name for column in ARRIVAL]

    def as_text(frame: DataFrame) -> DataFrame:
        text = "decode(v, 'mend', '7', v)" if is_corrected else "v"
        known = {name: name for name in frame.columns} | {"v": f"CAST({text} AS string) AS v"}
        missing = "CAST(NULL AS string) AS x"
        return frame.selectExpr(*(known.get(name, missing) for name in columns))

    def union(a: DataFrame, b: DataFrame, stands: DataFrame | None = None) -> DataFrame:
        both = as_text(a).unionByName(as_text(b))
        return both if stands is None else both.unionByName(as_text(stands))

    def first(a: DataFrame, b: DataFrame) -> DataFrame:
        is_accepted = "(v RLIKE '^[0-9]+$' AND d IS NOT NULL)"
        of_key = f"OVER (PARTITION BY k ORDER BY {', '.join(ID)})"
        rows = union(a, b).selectExpr("*", f"count_if({is_accepted}) {of_key} AS accepted")
        return rows.where(f"accepted = if({is_accepted}, 1, 0)").drop("accepted")

    def newest(a: DataFrame, b: DataFrame) -> DataFrame:
        return newest_accepted(table, union(a, b))

    functions: dict[Shape, Callable[..., DataFrame]]
    functions = {"append": first, "beside latest": newest}
    return functions.get(shape, union)


def sums_of_days(rows: DataFrame) -> DataFrame:
    """Return the number and the sum of the rows of each partition value."""
    return rows.groupBy("d").agg(expr("count(1) AS rows"), expr("sum(v) AS total"))


def sums_of_keys(changed: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the number and the sum of the rows of each changed key; delete those without."""
    sums = rows.groupBy("k").agg(expr("count(1) AS rows"), expr("sum(v) AS total"))
    return changed.join(sums, "k", "left").selectExpr("*", "rows IS NULL AS _deleted")
