"""What is done with the two moments of an hour that a clock shows twice, as it is when summer time
ends.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from lakehouse.iceberg.diff.diff_plan import plan_diff
from lakehouse.iceberg.diff.row_diff import apply_diff, count_by
from lakehouse.iceberg.metadata.all_partitions import AllPartitions
from lakehouse.iceberg.metadata.collected_rows import collect
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.metadata.write_result import Pin, Published, Refused
from lakehouse.iceberg.read import stale_partitions, version_keys
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import between, castable
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.iceberg.write import merge_rows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    OverwritePartitions,
    Versions,
)
from lakehouse_tests.iceberg.declarations import content, snapshot_id
from lakehouse_tests.processes import engine_of_process

ZONE = "Europe/Berlin"
FIRST, SECOND = "2026-10-25 00:30:00", "2026-10-25 01:30:00"
"""In UTC; in Berlin, half past two both."""
COLUMNS = [Column("id", "bigint"), Column("at", "timestamp"), Column("v", "int")]
SOURCE = [
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
    Column("_source_modified_at", "timestamp"),
]


def merged_again(engine: Engine) -> Any:
    """Merge a changed row of the second hour, by the moments that came."""
    table = IcebergTable("silver.merged", "", COLUMNS, Merge(on=["id"], prune_by=["at"]))
    write(engine, table, _rows(engine, _row(1, FIRST), _row(2, SECOND)))
    is_small, merge_rows._is_small = merge_rows._is_small, lambda attempt: False
    try:
        done = write(engine, table, _rows(engine, _row(2, SECOND, 2)))
    finally:
        merge_rows._is_small = is_small
    assert isinstance(done, Published)
    return [done.inserted_rows, done.updated_rows, *content(engine, table.name, "id", "v")]


def not_unique(engine: Engine) -> Any:
    """Append a moment that is there."""
    table = IcebergTable("silver.once", "", COLUMNS, Append(once_by=()), rules=[unique("at")])
    write(engine, table, _rows(engine, _row(1, SECOND)))
    return isinstance(write(engine, table, _rows(engine, _row(2, SECOND))), Refused)


def referred_to(engine: Engine) -> Any:
    """Append a moment that another table has."""
    partner = IcebergTable("silver.partners", "", COLUMNS, Append(once_by=()))
    table = IcebergTable(
        "silver.referring",
        "",
        COLUMNS,
        Append(once_by=()),
        rules=[references("at", partner.name, "at")],
    )
    write(engine, partner, _rows(engine, _row(1, SECOND)))
    return isinstance(write(engine, table, _rows(engine, _row(2, SECOND))), Published)


def landed_again(engine: Engine) -> Any:
    """Append what arrived already, by a key that is a moment."""
    table = IcebergTable("silver.landed", "", COLUMNS, Append(once_by=("at",)))
    for v in (1, 2):
        arriving = [(datetime.fromisoformat(f"{SECOND}+00:00"),)]
        write(engine, table, _rows(engine, _row(1, SECOND, v)), arriving=arriving)
    return content(engine, table.name, "id", "v")


def older_version(engine: Engine) -> Any:
    """Compute a partition that an older version came to; return the rows, and what is stale by
    it.
    """
    raw = IcebergTable(
        "bronze.versions", "", [*COLUMNS, *SOURCE], Append(), partitioning=["days(at)"]
    )
    table = IcebergTable(
        "silver.versions",
        "",
        COLUMNS,
        OverwritePartitions(by="at"),
        partitioning=["days(at)"],
        rows_of=raw,
        versions=Versions(of="id", newest=["v"]),
        rules=[castable("v", "int")],
    )
    day = datetime(2026, 10, 24, tzinfo=UTC)
    every = AllPartitions(((day, day + timedelta(2)),))

    def land(file: str, begin: datetime, row: str) -> None:
        source = f"'{file}' AS _source_file, '{file}' AS _source_sha256, 1L AS _source_row"
        modified = "TIMESTAMP'2026-10-26 00:00:00Z' AS _source_modified_at"
        write(engine, raw, _rows(engine, f"{row}, {source}, {modified}"))
        partitions = Partitions((f"{begin:%F}",), ((begin, begin + timedelta(1)),), every)
        run = Run("run", partitions, full_recompute=False)
        write(engine, table, lambda raw: raw, {"raw": versions_of(raw.name, by="at")}, run)

    # So that keys are looked for by a join, and partitions by what it finds.
    few, version_keys._FEW_KEYS = version_keys._FEW_KEYS, 0
    try:
        land("a", day + timedelta(1), _row(1, SECOND, 5))
        land("b", day, _row(1, "2026-10-24 09:00:00", 4))
        pins = (Pin(each.name, snapshot_id(engine, each.name)) for each in (raw, table))
        stale = stale_partitions._look_up_affected(engine, table, *pins)
    finally:
        version_keys._FEW_KEYS = few
    assert stale is not None
    return [*content(engine, table.name, "id", "v"), *map(str, stale)]


def shown(engine: Engine) -> Any:
    """Return both moments as a sample, a query and a count by partition show them."""
    table = IcebergTable(
        "silver.shown",
        "",
        COLUMNS,
        Append(once_by=()),
        rules=[between("v", 5, 9, on_failure="block")],
    )
    done = write(engine, table, _rows(engine, _row(1, FIRST), _row(2, SECOND)))
    assert isinstance(done, Refused)
    samples = [row["at"] for result in done.results for row in result.sample]
    times = f"TIMESTAMP'{FIRST}Z', TIMESTAMP'{SECOND}Z'"
    struct = f"named_struct('a', array(named_struct('at', TIMESTAMP'{SECOND}Z')), 'n', NULL)"
    asked = collect(
        engine.sql(f"SELECT explode(array({times})) AS at, map({times}) AS m, {struct} AS s")
    )
    diffed = IcebergTable("silver.diffed", "", COLUMNS, Append(once_by=()))
    write(engine, diffed, _rows(engine, _row(1, FIRST), _row(2, SECOND), _row(3, SECOND)))
    planned = plan_diff(engine, diffed.name, None, snapshot_id(engine, diffed.name))
    counted = count_by(planned, apply_diff(engine, planned), "at")
    return [
        sorted(samples),
        sorted(str(row["at"]) for row in asked),
        [str(each) for item in asked[0]["m"].items() for each in item],
        [str(asked[0]["s"]["a"][0]["at"]), asked[0]["s"]["n"]],
        [[str(row["at"]), row["added"]] for row in counted],
    ]


EXPECTED: dict[Callable[[Engine], Any], Any] = {
    merged_again: [0, 1, (1, 1), (2, 2)],
    not_unique: True,
    referred_to: True,
    landed_again: [(1, 1)],
    older_version: [(1, 5), f"{SECOND}+00:00"],
    shown: [
        [f"{FIRST}+00:00", f"{SECOND}+00:00"],
        [f"{FIRST}+00:00", f"{SECOND}+00:00"],
        [f"{FIRST}+00:00", f"{SECOND}+00:00"],
        [f"{SECOND}+00:00", None],
        [[f"{FIRST}+00:00", 1], [f"{SECOND}+00:00", 2]],
    ],
}


def all_in_this_process() -> dict[str, Any]:
    """Do all of it, by name."""
    engine = engine_of_process()
    return {do.__name__: do(engine) for do in EXPECTED}


def _row(id_: int, at: str, v: int = 1) -> str:
    return f"{id_}L AS id, TIMESTAMP'{at}Z' AS at, {v} AS v"


def _rows(engine: Engine, *selected: str) -> Callable[..., DataFrame]:
    return lambda **_: engine.sql(" UNION ALL ".join(f"SELECT {row}" for row in selected))
