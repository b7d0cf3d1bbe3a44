"""What upkeep asks of Glue does not grow by a request for each table; no JVM."""

from collections import Counter

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from pyiceberg.table import Table

from lakehouse.assets.monitoring.upkeep_runs import TABLE as RECORDS
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.iceberg.upkeep.remove_orphans import tables_in_location
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.upkeep.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.upkeep.upkeep_run import Upkept, carry_out, plan_run, with_cached_locations
from lakehouse_tests.iceberg.upkeep.tables import make_older_on_s3
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

pytestmark = pytest.mark.unit


def declared(name: str) -> IcebergTable:
    return IcebergTable(name, "Numbers.", [Column("id", "bigint")], write=Append(once_by=()))


LOG, HEALTH = declared("monitoring.upkeep_runs"), declared("monitoring.table_health")


@pytest.fixture
def engine(aws_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Two databases of an account, one of which is others', with a table each."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = engine_without_spark(aws_settings)
    for name in ("silver.first", "others.table"):
        create_numbers(made, name)
    return made


def upkept(engine: Engine, count: int) -> Upkept:
    """Return tables to keep, made as copies of the first that has no rows."""
    first = engine.catalog.load("silver.first")
    names = [f"silver.t{number:03}" for number in range(count)]
    for name in names:
        engine.catalog.client.register_table(name, first.metadata_location)
    tables = [LOG, HEALTH, declared("gold.not_there_yet"), *map(declared, names)]
    return Upkept({table.name: table for table in tables}, LOG, HEALTH)


def count_requests(engine: Engine) -> Counter[str]:
    """Count what is asked of Glue from here on, by operation."""
    asked: Counter[str] = Counter()

    def note(params: object, model: object, **_: object) -> None:
        asked[model.name] += 1  # type: ignore[attr-defined]

    engine.catalog.client.glue.meta.events.register("before-parameter-build.glue", note)  # type: ignore[attr-defined]
    return asked


@pytest.mark.parametrize("count", [1, 4])
def test_a_plan_lists_tables_by_database(engine: Engine, count: int) -> None:
    kept = upkept(engine, count)
    requests = count_requests(engine)
    cached = with_cached_locations(engine, kept)
    plan = plan_run(cached, kept, kept.tables(cached), named_by_user=False)
    assert len(plan.healths) == count
    # Of `silver`, and of `monitoring` and `gold`, which do not exist; the emulator has one page.
    assert requests == {"GetTables": 3}


@pytest.fixture
def with_denied(engine: Engine) -> Engine:
    """The same, where the database of others may not be read."""

    def deny(params: dict[str, str], **_: object) -> None:
        if params["DatabaseName"] == "others":
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetTables")

    events = engine.catalog.client.glue.meta.events  # type: ignore[attr-defined]
    events.register("provide-client-params.glue.GetTables", deny)
    return engine


@pytest.mark.long
def test_upkeep_asks_no_database_of_others_whose_files_lie_in_a_table(
    with_denied: Engine,
) -> None:
    own = declared("silver.first")
    kept = Upkept({table.name: table for table in (own, RECORDS, HEALTH)}, RECORDS, HEALTH)
    health = read_table_health(with_denied, own.name)

    def work(engine: Engine) -> StepResult:
        shared_with = ", ".join(tables_in_location(engine, own.name))
        return StepResult(own.name, "remove_orphans", "skipped", shared_with)

    step = PlannedStep(own.name, "remove_orphans", is_due=True, reason="a test", work=work)
    planned = UpkeepPlan((step,), {own.name: health})

    (record,) = carry_out(with_denied, kept, planned, "a run")

    assert (record.outcome, record.reason) == ("skipped", "")


def put(engine: Engine, name: str) -> str:
    """Put a file where a table is that no metadata names."""
    table = engine.catalog.load("silver.first")
    path = f"{table.location()}/{name}"
    with table.io.new_output(path).create() as file:
        file.write(b"left behind")
    return path


def test_an_erasure_removes_nothing_where_a_table_of_others_lies_inside(
    with_denied: Engine,
) -> None:
    theirs = put(with_denied, "theirs/metadata/00000-1.metadata.json")
    put(with_denied, "theirs/data/rows.parquet")
    before = list_location(with_denied.catalog.load("silver.first")).keys()

    (result,) = remove_unnamed(with_denied.within(["silver.first"]), ["silver.first"])

    assert result.outcome == "failed"
    assert "another table, of a database without declarations" in result.reason
    assert theirs in result.reason
    assert list_location(with_denied.catalog.load("silver.first")).keys() == before


@pytest.fixture
def twin(engine: Engine) -> Table:
    """A table of a database without declarations, that was registered by a metadata file
    of a declared one and went on by itself.
    """
    engine.catalog.client.create_namespace("sandbox")
    first = engine.catalog.load("silver.first")
    registered = engine.catalog.client.register_table("sandbox.x", first.metadata_location)
    registered.append(pa.table({"id": [1]}))
    # Commits of the declared table since then.
    engine.catalog.load("silver.first").append(pa.table({"id": [2]}))
    return registered


def rows(table: Table) -> list[int]:
    return table.refresh().scan().to_arrow()["id"].to_pylist()


@pytest.mark.long
def test_an_erasure_removes_nothing_of_a_twin(with_denied: Engine, twin: Table) -> None:
    engine = with_denied
    (result,) = remove_unnamed(engine.within(["silver.first"]), ["silver.first"])

    assert result.outcome == "failed"
    assert "the table sandbox.x, of a database without declarations" in result.reason
    assert rows(twin) == [1]


def test_metadata_of_a_killed_commit_goes_where_nobody_may_list_databases(
    with_denied: Engine,
) -> None:
    def deny(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetDatabases")

    lost = put(with_denied, "metadata/00000-lost.metadata.json")
    make_older_on_s3(lost, 30)
    events = with_denied.catalog.client.glue.meta.events  # type: ignore[attr-defined]
    events.register("provide-client-params.glue.GetDatabases", deny)

    (result,) = remove_unnamed(with_denied.within(["silver.first"]), ["silver.first"])

    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 1)


def test_the_embedded_catalog_tells_of_tables_that_nobody_declared_too(
    settings: Settings,
) -> None:
    engine = engine_without_spark(settings)
    create_numbers(engine, "own.table")
    kept = Upkept({LOG.name: LOG, HEALTH.name: HEALTH}, LOG, HEALTH)
    looked = with_cached_locations(engine, kept)
    assert set(looked.catalog.metadata_locations()) == {"own.table"}
    assert kept.tables(looked) == []
