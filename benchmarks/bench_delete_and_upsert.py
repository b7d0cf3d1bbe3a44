"""Cost of deleting a customer and of changing 1 % of 10 million rows, against a Parquet rewrite.

Run as `python -m benchmarks.bench_delete_and_upsert [--rounds N] [--millions N]
[--pyiceberg-millions N]`. Measures the full write (compare, stage, audit, publish) with our
defaults and with Iceberg's format 3, reads afterwards until upkeep has run, and PyIceberg's upsert
on a million rows.

Time in Spark jobs on 10 million rows: a delete of 1.8 s has 0.25 to find the customer's keys, 0.4
to look them up, 0.5 to find the row positions, 0.1 to write these, and the rest for planning and
commit. An upsert of 5 s has 2.3 to compare 1 % of the rows with all columns, which are decoded for
all rows, 0.5 to find positions, 0.8 to write, and 0.5 to evaluate rules.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench_small_files import AS_ICEBERG_WRITES
from benchmarks.bench_write import FIVE_RULES, ORDERS, orders
from benchmarks.harness import Figure, Measured, Way, compare, conditions, options, report, show
from benchmarks.real_upkeep import keep_up
from benchmarks.targets import Target, targets_of
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MILLIONS, PYICEBERG_MILLIONS = 10.0, 1.0
TARGETS = targets_of("delete_and_upsert")
ONE_IN = 100
"""An upsert changes one of this many rows."""
DEFAULT_TABLE = replace(
    ORDERS, name="bench.defaults", write=Merge(on=("id",)), rules=FIVE_RULES, format_version=2
)
FORMAT_3 = replace(DEFAULT_TABLE, name="bench.format_3", format_version=3)


def changed(rows: "DataFrame", batch: int) -> "DataFrame":
    """Return every hundredth row with a new note, different rows for each batch."""
    columns = [name for name in ORDERS.column_names if name != "note"]
    of_batch = rows.where(f"id % {ONE_IN} = {batch % ONE_IN}")
    return of_batch.selectExpr(*columns, f"'changed {batch}' AS note")


def some_customers(engine: Engine) -> Iterator[int]:
    """Return customers with orders in a reproducible order."""
    rows = orders(engine, 0, 100).select("customer_id").distinct().sort("customer_id").collect()
    return iter([row["customer_id"] for row in rows])


@dataclass
class Merged:
    """A table of ours and its changes."""

    engine: Engine
    table: IcebergTable
    rows: int
    batches: Iterator[int] = field(default_factory=count)
    customers: Iterator[int] = field(default_factory=lambda: iter(()))

    def fill(self) -> None:
        """Write all rows."""
        self.customers = some_customers(self.engine)
        write(self.engine, self.table, lambda: orders(self.engine, 0, self.rows))
        show(f"{self.table.name}: {self.rows} rows")

    def delete(self) -> None:
        """Delete the orders of the next customer."""
        customer = next(self.customers)
        rows = self.engine.spark.table(self.engine.catalog.sql_name(self.table.name))
        deleted = rows.where(f"customer_id = {customer}").selectExpr("id", "true AS _deleted")
        published = write(self.engine, self.table, lambda: deleted)
        assert isinstance(published, Published), published
        assert published.removed_rows, published

    def upsert(self) -> None:
        """Change every hundredth row."""
        batch = next(self.batches)
        source = changed(orders(self.engine, 0, self.rows), batch)
        published = write(self.engine, self.table, lambda: source)
        assert isinstance(published, Published), published
        assert published.updated_rows, published

    def head(self) -> int:
        """Return the current snapshot id."""
        main = read_history(self.engine, self.table.name).main
        assert main is not None
        return main.snapshot_id

    def scan(self, snapshot_id: int) -> None:
        """Read all rows of a snapshot."""
        self.engine.sql(
            "SELECT count(1), sum(amount), sum(length(note)) FROM"
            f" {self.engine.catalog.sql_name(self.table.name)} VERSION AS OF {snapshot_id}"
        ).first()


class Plain:
    """The same rows as plain Parquet; each change rewrites all files."""

    def __init__(self, engine: Engine, folder: Path, rows: int) -> None:
        self.engine, self.rows = engine, rows
        self.batches, self.customers = count(), some_customers(engine)
        self._first, self._again = (folder / "first").as_uri(), (folder / "again").as_uri()
        self._write(orders(engine, 0, rows), self._first)

    def delete(self) -> None:
        """Write all orders except those of one customer."""
        rows = self.engine.spark.read.parquet(self._first)
        self._write(rows.where(f"customer_id <> {next(self.customers)}"), self._again)

    def upsert(self) -> None:
        """Write all orders with every hundredth changed."""
        rows = self.engine.spark.read.parquet(self._first)
        source = changed(orders(self.engine, 0, self.rows), next(self.batches))
        unchanged = rows.join(source, "id", "left_anti")
        self._write(unchanged.unionByName(source), self._again)

    def _write(self, frame: "DataFrame", target: str) -> None:
        frame.write.mode("overwrite").options(**AS_ICEBERG_WRITES).parquet(target)


def measure_changes(
    plain: Plain, default_table: Merged, format_3: Merged, rounds: int
) -> dict[str, list[Measured]]:
    """Compare deletes and upserts with a rewrite; format 3 has no target."""

    def ways(
        of_plain: Callable[[], None],
        by_default: Callable[[], None],
        of_format_3: Callable[[], None],
        target: Target,
    ) -> list[Way]:
        return [
            Way("a rewrite as plain Parquet", of_plain),
            Way("our defaults, staged and audited", by_default, target),
            Way("the same on format 3", of_format_3),
        ]

    deletes = ways(plain.delete, default_table.delete, format_3.delete, TARGETS["delete"])
    upserts = ways(plain.upsert, default_table.upsert, format_3.upsert, TARGETS["upsert"])
    title = f"{default_table.rows / 1e6:g} million rows"
    return {
        f"{title}: a delete of one customer": compare(deletes, rounds=rounds, warm_ups=1),
        f"{title}: an upsert of 1 %": compare(upserts, rounds=rounds, warm_ups=1),
    }


def measure_reads(table: Merged, title: str, rounds: int) -> dict[str, list[Measured]]:
    """Compare scans before a delete and an upsert, after them, and after upkeep.

    Upkeep runs first, since the table was changed before.
    """
    keep_up(table.engine, [table.table.name])
    before = table.head()
    table.delete()
    table.upsert()
    after = table.head()
    keep_up(table.engine, [table.table.name])
    kept = table.head()
    ways = [
        Way("before a delete and an upsert", lambda: table.scan(before), times=3),
        Way("after them", lambda: table.scan(after), TARGETS["scan after changes"], times=3),
        Way("after upkeep", lambda: table.scan(kept), times=3),
    ]
    return {title: compare(ways, rounds=rounds)}


def measure_pyiceberg(engine: Engine, rows: int, rounds: int) -> list[Measured]:
    """Compare our upsert with PyIceberg's."""
    default_table = Merged(engine, replace(DEFAULT_TABLE, name="bench.ours"), rows)
    pyiceberg_table = Merged(engine, replace(DEFAULT_TABLE, name="bench.theirs"), rows)
    for table in (default_table, pyiceberg_table):
        table.fill()

    def upsert() -> None:
        batch = next(pyiceberg_table.batches)
        source = changed(orders(engine, 0, rows), batch).toArrow()
        loaded = engine.catalog.load(pyiceberg_table.table.name)
        columns = loaded.schema().as_arrow()
        result = loaded.upsert(source.select(columns.names).cast(columns), join_cols=["id"])
        assert result.rows_updated, result

    ways = [
        Way("PyIceberg", upsert),
        Way("our defaults", default_table.upsert, TARGETS["upsert against PyIceberg"]),
    ]
    return compare(ways, rounds=rounds, warm_ups=1)


def added_bytes(table: Merged) -> Figure:
    """Return the bytes that the newest upsert added, relative to the table size."""
    history = read_history(table.engine, table.table.name)
    assert history.main is not None
    ratio = history.main.count("added-files-size") / history.main.count("total-files-size")
    return Figure(f"bytes added by an upsert of 1 %, {table.table.name}", ratio)


def main(rounds: int, millions: float, pyiceberg_millions: float) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    rows, few_rows = int(millions * 1_000_000), int(pyiceberg_millions * 1_000_000)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        engine = open_engine(
            replace(Settings.from_env(), home=folder / "home", spark_memory="6g")
        )
        plain = Plain(engine, folder / "plain", rows)
        default_table, format_3 = (
            Merged(engine, DEFAULT_TABLE, rows),
            Merged(engine, FORMAT_3, rows),
        )
        for table in (default_table, format_3):
            table.fill()
        parts = measure_changes(plain, default_table, format_3, rounds)
        ratios = [added_bytes(default_table), added_bytes(format_3)]
        parts |= measure_reads(default_table, "A scan, our defaults", rounds)
        parts |= measure_reads(format_3, "A scan, format 3", rounds)
        parts[f"An upsert of 1 % of {pyiceberg_millions:g} million rows"] = measure_pyiceberg(
            engine, few_rows, max(1, rounds // 2)
        )
    sys.exit(0 if report("delete_and_upsert", environment, parts, {"Bytes": ratios}) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--millions", type=float, default=MILLIONS)
    parser.add_argument("--pyiceberg-millions", type=float, default=PYICEBERG_MILLIONS)
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.millions, chosen.pyiceberg_millions)
