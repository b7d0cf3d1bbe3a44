"""How what is owed is split into runs."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import chain

import dagster as dg
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, NestedField

from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import reads_metadata
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.partitions import partition_groups
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions

DAILY = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-03-07")
LATER = dg.DailyPartitionsDefinition("2026-03-03", end_date="2026-03-07")
BY_D = OverwritePartitions(by="d")
SCHEMA = Schema(NestedField(1, "d", DateType()))
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "d"))
MONTHLY = dg.MonthlyPartitionsDefinition("2026-01-01", end_date="2026-05-01")


def asset(
    name: str, *reads: str, by: dg.PartitionsDefinition | None = None
) -> dg.AssetsDefinition:
    given = {read: latest(read, by="d" if by else None) for read in reads}

    @dg.asset(
        key=asset_key(name),
        deps=[*map(asset_key, reads)],
        partitions_def=by,
        metadata=reads_metadata(given),
    )
    def compute() -> None: ...

    return compute


@pytest.fixture
def raw(settings: Settings) -> str:
    client = open_engine(settings).catalog.client
    client.create_namespace("bronze")
    table = client.create_table("bronze.raw", SCHEMA, partition_spec=BY_DAY)
    table.append(pa.table({"d": [date(2026, 3, day) for day in range(1, 5)]}))
    return "bronze.raw"


@pytest.mark.unit
def test_tables_of_different_partitions_share_no_run(settings: Settings, raw: str) -> None:
    """Of two tables of days that begin on different days, and of what is computed from one of
    them, or from both.
    """
    assets = [
        asset(raw),
        asset("silver.days", raw, by=DAILY),
        asset("silver.later", raw, by=LATER),
        asset("silver.sums", "silver.days", by=DAILY),
        asset("gold.months", "silver.days", by=MONTHLY),
        asset("gold.of_days", "silver.sums"),
        asset("gold.of_months", "silver.days", "gold.months"),
        asset("gold.of_both", "silver.days", "silver.later"),
    ]
    downstream = Downstream(dg.Definitions(assets=assets).resolve_asset_graph(), raw)
    declared = {name: days_table(name) for name in downstream.tables}

    runs = [
        run
        for stage in downstream.stale_partition_runs(open_engine(settings), declared)
        for run in stage
    ]
    assert sorted((sorted(run.tables), run.partitions) for run in runs) == [
        (["gold.of_days", "silver.days", "silver.sums"], ("2026-03-01", "2026-03-04")),
        (["silver.later"], ("2026-03-03", "2026-03-04")),
    ]
    assert downstream.with_alike(["gold.months"]) == ("gold.months", "gold.of_months")


READS = {
    "silver.days": ["bronze.raw"],
    "silver.months": ["bronze.raw"],
    "gold.whole": ["silver.days", "silver.months"],
    "gold.of_whole": ["gold.whole"],
}
"""Days that are computed from a whole table, of which days and months are the sources."""
PARTITIONS = {"silver.days": DAILY, "silver.months": MONTHLY, "gold.of_whole": DAILY}


@pytest.fixture
def runs(settings: Settings, raw: str) -> Callable[[], Iterator[PendingRun]]:
    assets = [asset(raw)]
    assets += [asset(name, *reads, by=PARTITIONS.get(name)) for name, reads in READS.items()]
    downstream = Downstream(dg.Definitions(assets=assets).resolve_asset_graph(), raw)
    declared = {name: days_table(name) for name in downstream.tables}
    engine = open_engine(settings)
    return lambda: chain.from_iterable(downstream.stages(engine, declared, has_arrivals=False))


def append_day(settings: Settings, name: str, sources: Sequence[str] = ()) -> None:
    engine = open_engine(settings)
    client = engine.catalog.client
    if not engine.catalog.has(name):
        client.create_namespace_if_not_exists(name.partition(".")[0])
        client.create_table(name, SCHEMA, partition_spec=BY_DAY)
    read = {source: read_history(engine, source).refs["main"] for source in sources}
    commit = CommitProperties("write", new_write_id(), inputs=read)
    client.load_table(name).append(
        pa.table({"d": [date(2026, 3, 4)]}), snapshot_properties=commit.to_summary()
    )


@pytest.mark.long
@pytest.mark.unit
def test_days_of_a_table_that_is_computed_last_follow_it_at_once(
    settings: Settings, raw: str, runs: Callable[[], Iterator[PendingRun]]
) -> None:
    for _ in range(2):
        done = []
        for run in runs():
            done += run.tables
            for name in run.tables:
                append_day(settings, name, READS[name])
        assert sorted(done[:2]) == ["silver.days", "silver.months"]
        assert done[2:] == ["gold.whole", "gold.of_whole"]
        assert list(runs()) == []
        append_day(settings, raw)


@pytest.mark.long
@pytest.mark.unit
def test_what_a_run_leaves_as_it_was_is_not_asked_for_again_and_again(
    settings: Settings, runs: Callable[[], Iterator[PendingRun]]
) -> None:
    """First runs that change nothing, then runs that commit and leave all as stale as before."""
    in_vain = [run.tables for run in runs()]
    assert sorted(in_vain) == [("silver.days",), ("silver.months",)]

    requested: Counter[str] = Counter()
    for run in runs():
        requested.update(run.tables)
        for name in run.tables:
            append_day(settings, name)
    assert set(requested) == set(READS) and max(requested.values()) <= 2


def days_table(name: str) -> IcebergTable:
    columns = [Column("d", "date")]
    return IcebergTable(name, "Days.", columns, BY_D, partitioning=["d"])


NAMES = [f"silver.t{number}" for number in range(6)]
EVERY = DAILY.get_partition_keys()


def some_chain(chance: random.Random) -> tuple[Downstream, dict[str, list[str]]]:
    reads: dict[str, list[str]] = {}
    for position, name in enumerate(NAMES):
        before = chance.sample(NAMES[:position], min(position, chance.randint(0, 2)))
        reads[name] = before or ["bronze.raw"]
    assets = [asset("bronze.raw")]
    assets += [asset(name, *sources, by=DAILY) for name, sources in reads.items()]
    graph = dg.Definitions(assets=assets).resolve_asset_graph()
    return Downstream(graph, "bronze.raw"), reads


def keys_computed(run: PendingRun) -> list[str]:
    bounds = run.bounds
    found: list[str] = []
    for first, last in zip(bounds[::2], bounds[1::2], strict=True):
        found += EVERY[EVERY.index(first) : EVERY.index(last) + 1]
    return found


@pytest.mark.unit
@pytest.mark.parametrize("seed", range(30))
def test_what_each_table_owes_is_computed_once_and_nothing_else(
    settings: Settings, seed: int
) -> None:
    chance = random.Random(seed)
    downstream, reads = some_chain(chance)
    owed: dict[str, set[str]] = {}
    for name in NAMES:
        own = set(chance.sample(EVERY, chance.randint(0, 3)))
        owed[name] = own.union(*(owed.get(source, set()) for source in reads[name]))
    runs = downstream.partition_runs(
        open_engine(settings), [*map(days_table, NAMES)], DAILY, owed
    )

    computed = {name: [] for name in NAMES}
    for run in runs:
        in_order = [table for table in downstream.tables if table in run.tables]
        assert list(run.tables) == in_order
        for table in run.tables:
            computed[table] += keys_computed(run)
    assert {name: sorted(keys) for name, keys in computed.items()} == {
        name: sorted(keys) for name, keys in owed.items()
    }
    assert len({run.tables for run in runs}) == len(runs)
    parts = [part for run in runs for part in run.parts or [run]]
    for name in NAMES:
        of_parts = [keys_computed(part) for part in parts if name in part.tables]
        assert sorted(chain.from_iterable(of_parts)) == sorted(owed[name])
    assert all(len(part.only) <= 1 for run in runs for part in run.parts)


@pytest.mark.unit
def test_an_asset_that_knows_only_ranges_is_computed_without_gaps(settings: Settings) -> None:
    @dg.asset(
        key=asset_key("gold.plain"), deps=[asset_key("silver.days")], partitions_def=DAILY
    )
    def plain() -> None: ...

    assets = [asset("bronze.raw"), asset("silver.days", "bronze.raw", by=DAILY), plain]
    graph = dg.Definitions(assets=assets).resolve_asset_graph()
    table = days_table("silver.days")
    owed = {table.name: {EVERY[0], EVERY[1], EVERY[4]}}

    runs = Downstream(graph, "bronze.raw").partition_runs(
        open_engine(settings), [table], DAILY, owed
    )

    assert [run.partitions for run in runs] == [(EVERY[0], EVERY[1]), (EVERY[4], EVERY[4])]
    assert all(run.tables == ("silver.days", "gold.plain") and not run.tags for run in runs)


@pytest.mark.unit
def test_many_rows_of_the_source_divide_the_runs(
    settings: Settings, raw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_groups, "MOST_ROWS", 2)
    assets = [asset(raw), asset("silver.days", raw, by=DAILY)]
    downstream = Downstream(dg.Definitions(assets=assets).resolve_asset_graph(), raw)
    table = days_table("silver.days")

    ((first, second),) = downstream.stale_partition_runs(
        open_engine(settings), {table.name: table}
    )

    assert (first.partitions, second.partitions) == ((EVERY[0], EVERY[1]), (EVERY[2], EVERY[3]))
