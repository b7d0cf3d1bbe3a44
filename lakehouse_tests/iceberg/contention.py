"""What several processes write at once, one table for each write mode, so that a lost or
doubled row shows.

Each write puts a batch of `BATCH_ROWS` rows, of which readers must see all or none.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import accepted, between
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse_tests.processes import engine_of_process, meet

BATCH_ROWS = 5
_BATCH = [Column("writer", "int"), Column("batch", "int"), Column("n", "int")]

APPENDED = IcebergTable(
    name="bronze.appended",
    comment="Each write adds a batch.",
    columns=_BATCH,
    write=Append(once_by=()),
    rules=[between("n", 0, BATCH_ROWS - 1, on_failure="block"), unique("writer", "batch", "n")],
)
OVERWRITTEN = IcebergTable(
    name="gold.overwritten",
    comment=(
        "Each write replaces all by what it read of this table and a batch: a stale read would"
        " lose another's."
    ),
    columns=_BATCH,
    write=Overwrite(),
    rules=[unique("writer", "batch", "n")],
)
PARTITIONED = IcebergTable(
    name="silver.partitioned",
    comment="Each writer replaces its own partition by its next batch.",
    columns=_BATCH,
    partitioning=["writer"],
    write=OverwritePartitions(by="writer"),
    rules=[between("n", 0, BATCH_ROWS - 1, on_failure="block")],
)
COUNTED = IcebergTable(
    name="silver.counted",
    comment="Each write inserts a batch of keys, and adds one to a count that all share.",
    columns=[
        Column("key", "string"),
        Column("count", "bigint"),
        Column("changed_at", "timestamp"),
    ],
    write=Merge(on=["key"], stamp="changed_at"),
    rules=[accepted("count", range(1, 10_000), on_failure="block"), unique("key")],
)
TABLES = (APPENDED, OVERWRITTEN, PARTITIONED, COUNTED)
SHARED_KEY = "shared"
REFUSED_AT = 0
"""The round in which each writer also tries a batch that a blocking rule refuses."""


def write_rounds(writer: int, writers: int, rounds: int, shared_home: str) -> dict[str, int]:
    """Write a batch to each table in each round; in the first, all writers begin each write at
    the same moment. Return the tries by table.
    """
    engine = engine_of_process(shared_home, f"{shared_home}/locks-{writer}")
    engine.spark.conf.set("spark.sql.shuffle.partitions", "1")
    tries: Counter[str] = Counter()
    for batch in range(rounds):
        for table, write_one in _WRITES.items():
            if batch == 0:
                meet(Path(shared_home) / "meetings" / table, writers)
            done = write_one(engine, writer, batch)
            assert isinstance(done, Published), done
            tries[table] += done.attempts
        if batch == REFUSED_AT:
            refused = write(
                engine,
                APPENDED,
                lambda: _batch(engine, writer, -1)().selectExpr(
                    "writer", "batch", "n + 1 AS n"
                ),
            )
            assert isinstance(refused, Refused), refused
    return tries


def _append(engine: Engine, writer: int, batch: int) -> Outcome:
    return write(engine, APPENDED, _batch(engine, writer, batch))


def _overwrite(engine: Engine, writer: int, batch: int) -> Outcome:
    return write(
        engine,
        OVERWRITTEN,
        _all_and(engine, writer, batch),
        {"standing": latest(OVERWRITTEN.name)},
    )


def _overwrite_partition(engine: Engine, writer: int, batch: int) -> Outcome:
    mine = Run("", Partitions((str(writer),), ((writer, writer + 1),)))
    return write(engine, PARTITIONED, _batch(engine, writer, batch), run=mine)


def _merge(engine: Engine, writer: int, batch: int) -> Outcome:
    return write(
        engine, COUNTED, _count(engine, writer, batch), {"standing": latest(COUNTED.name)}
    )


_WRITES = {
    APPENDED.name: _append,
    OVERWRITTEN.name: _overwrite,
    PARTITIONED.name: _overwrite_partition,
    COUNTED.name: _merge,
}


def _batch(engine: Engine, writer: int, batch: int) -> Callable[[], DataFrame]:
    rows = [
        f"CAST({writer} AS INT) AS writer",
        f"CAST({batch} AS INT) AS batch",
        "CAST(id AS INT) AS n",
    ]
    return lambda: engine.spark.range(0, BATCH_ROWS, 1, 1).selectExpr(*rows)


def _all_and(engine: Engine, writer: int, batch: int) -> Callable[..., DataFrame]:
    return lambda standing: standing.unionByName(_batch(engine, writer, batch)())


def _count(engine: Engine, writer: int, batch: int) -> Callable[..., DataFrame]:
    def compute(standing: DataFrame) -> DataFrame:
        keys = _batch(engine, writer, batch)().selectExpr(
            "concat_ws('-', writer, batch, n) AS key", "CAST(1 AS BIGINT) AS count"
        )
        shared = standing.where(f"key = '{SHARED_KEY}'").selectExpr(
            "coalesce(max(count), 0) + 1 AS count"
        )
        return keys.unionByName(shared.selectExpr(f"'{SHARED_KEY}' AS key", "count"))

    return compute
