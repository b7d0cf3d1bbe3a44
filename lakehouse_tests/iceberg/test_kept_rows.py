"""Rows kept on a cluster equal those of one machine; Spark is told that it is a cluster."""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import commit_retries
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write import kept_rows
from lakehouse.iceberg.write.kept_rows import keeping_rows, list_folders
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.spark.s3a import s3a_options
from lakehouse.storage.stores import open_store
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery, refs

pytestmark = pytest.mark.spark
OF_EACH_KIND = (
    "SELECT id, uuid() AS other, CAST(id / 3 AS DECIMAL(10, 2)) AS amount,"
    " DATE'0001-01-01' AS ancient, TIMESTAMP'1582-10-10 12:00:00' AS moment,"
    " TIMESTAMP_NTZ'2026-03-29 02:30:00' AS wall, X'00FF' AS bytes, named_struct('a b', id) AS `s,t`,"
    " map('k', array(id, NULL)) AS m FROM range(3)"
)
LOST = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found!"


@pytest.fixture
def on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "is_on_one_machine", lambda _: False)


@pytest.fixture(params=["home", "bucket"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine that stages rows below its home, and one that does in its bucket."""
    if request.param == "home":
        return request.getfixturevalue("embedded_engine")
    settings = request.getfixturevalue("aws_settings")
    return replace(
        request.getfixturevalue("glue_engine"),
        open_store=lambda: open_store(settings),
        store_options=s3a_options(settings),
    )


def staged_files(engine: Engine) -> list[str]:
    return [item.key for item in engine.store.objects("staging/kept-rows/")]


@pytest.mark.long
def test_rows_of_each_kind_are_read_as_they_were_and_computed_once(engine, on_a_cluster):
    frame = engine.sql(OF_EACH_KIND)
    with keeping_rows(engine) as kept:
        rows = kept.keep(frame)
        first = sorted(rows.collect())
        assert sorted(rows.collect()) == first
        assert sorted(rows.drop("other").collect()) == sorted(frame.drop("other").collect())
        assert rows.dtypes == frame.dtypes
        assert staged_files(engine)

    assert staged_files(engine) == []
    assert list_folders(engine.store, engine.lock_dir) == []


def test_of_no_rows_there_are_none(embedded_engine, on_a_cluster):
    with keeping_rows(embedded_engine) as kept:
        rows = kept.keep(embedded_engine.sql(f"{OF_EACH_KIND} WHERE id < 0"))

        assert rows.collect() == []


def test_what_fails_leaves_no_rows_and_lets_the_next_one_look_again(
    embedded_engine, on_a_cluster
):
    engine = embedded_engine
    with pytest.raises(ZeroDivisionError), keeping_rows(engine) as kept:
        kept.keep(engine.sql("SELECT 1 AS one"))
        raise ZeroDivisionError

    assert staged_files(engine) == []
    (looked_at_again,) = list_folders(engine.store, engine.lock_dir)
    assert looked_at_again.is_left


@pytest.mark.parametrize(("losses", "attempts"), [(3, 4), (4, None)])
def test_a_write_that_lost_its_rows_begins_again_a_few_times(
    embedded_engine, monkeypatch, losses, attempts
):
    engine, left = embedded_engine, [None] * losses
    deliver = delivery(engine, "a", [("1", "ann")])
    monkeypatch.setattr(commit_retries.time, "sleep", lambda _: None)

    def losing() -> DataFrame:
        if left:
            left.pop()
            raise RuntimeError(LOST)
        return deliver()

    if attempts is None:
        with pytest.raises(RuntimeError, match="Checkpoint block"):
            write(engine, DELIVERED, losing)
        return
    done = write(engine, DELIVERED, losing)

    assert isinstance(done, Published)
    assert done.attempts == attempts
    assert content(engine, DELIVERED.name, "id") == [("1",)]
    assert refs(engine, DELIVERED.name) == {"main"}
