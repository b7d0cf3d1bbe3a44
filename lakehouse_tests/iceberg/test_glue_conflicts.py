"""Writers of one table in Glue that share no lock: who comes second is refused, and what was
reported as written is there.

MiniStack refuses a commit whose version is stale, as AWS says that Glue does. Moto accepts it, and
silently loses the commit before it, so that tests on moto show nothing of conflicts.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.settings import Settings
from lakehouse_tests.conftest import engine_on, with_bucket
from lakehouse_tests.iceberg.declarations import EVENTS
from lakehouse_tests.ministack import forget_all

WRITERS, ROUNDS = 3, 5
NAME = "silver.contended"
NO_RETRIES = {"commit.retry.num-retries": "0"}


@pytest.fixture
def on_ministack(ministack: str, settings: Settings) -> Settings:
    forget_all(ministack)
    return with_bucket(ministack, settings)


@pytest.mark.scenario
def test_who_comes_second_is_rejected(on_ministack: Settings, monkeypatch) -> None:
    catalog = Catalog.of(on_ministack)
    catalog.client.create_namespace("silver")
    schema = Schema(NestedField(1, "id", LongType()))
    catalog.client.create_table(NAME, schema, properties=NO_RETRIES)
    real, others = GlueCatalog._update_glue_table, [2]

    def update_late(client, **given) -> None:
        if others:
            append(catalog, others.pop())
        real(client, **given)

    monkeypatch.setattr(GlueCatalog, "_update_glue_table", update_late)
    with pytest.raises(CommitFailedException):
        append(catalog, 1)

    assert catalog.load(NAME).scan().to_arrow()["id"].to_pylist() == [2]


def append(catalog: Catalog, at: int) -> None:
    catalog.load(NAME).append(pa.table({"id": pa.array([at], pa.int64())}))


@pytest.mark.long
@pytest.mark.spark
def test_writers_on_hosts_of_their_own_lose_nothing(
    spark, on_ministack: Settings, tmp_path: Path
) -> None:
    engine = engine_on(spark, on_ministack)
    attempts = []
    barrier = Barrier(WRITERS)

    def write_rounds(writer: int) -> None:
        own = replace(engine, lock_dir=tmp_path / f"locks-{writer}")
        for batch in range(ROUNDS):
            barrier.wait(120)
            row = f"SELECT {writer * ROUNDS + batch}L AS id, 1 AS v"
            done = write(own, EVENTS, lambda row=row: own.sql(row))
            assert isinstance(done, Published)
            attempts.append(done.attempts)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write_rounds, range(WRITERS)))

    ids = engine.catalog.load(EVENTS.name).scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == list(range(WRITERS * ROUNDS))
    assert max(attempts) > 1, "no writer came second"
