"""A delivery on real Spark and Iceberg lands once and is archived, also after a kill."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.values.write_result import Published, Refused, Unchanged
from lakehouse.ingestion import land as landing
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.land import land
from lakehouse.ingestion.staged_frame import plan_landing_table, read_staged_rows
from lakehouse.ingestion.staging.staged_rows import open_staging
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse_tests.ingestion.conftest import CUSTOMERS, FRUITS, files

TABLE = bronze_table(FRUITS, "Fruits as delivered.")
APPLE = "id,fruit,berry\n1,Apple,false\n"
KIWI = "fruit,berry,id\nKiwi,,2\n"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = "id, fruit, berry, _source_file, _source_row"


def rows(engine, columns: str = COLUMNS, table: str = FRUITS.table) -> list[tuple]:
    order = "_ingested_at, _source_modified_at, _source_file, _source_row"
    found = engine.sql(
        f"SELECT {columns} FROM {engine.catalog.sql_name(table)} ORDER BY {order}"
    )
    return [tuple(row) for row in found.collect()]


def snapshots(engine) -> int:
    return len(read_history(engine, FRUITS.table).snapshots)


def test_waiting_files_are_landed_by_one_append_with_their_source(engine, home, inbox) -> None:
    inbox.put("a.csv", APPLE, second=1)
    inbox.put("b.csv", KIWI, second=2)

    done = land(engine, FRUITS, TABLE, inbox.store, home)

    assert isinstance(done.outcome, Published)
    assert done.outcome.added_rows == 2
    assert rows(engine) == [
        ("1", "Apple", "false", "a.csv", 1),
        ("2", "Kiwi", None, "b.csv", 1),
    ]
    started_at = (done.delivery.ingest.started_at - EPOCH) // timedelta(microseconds=1)
    assert rows(
        engine, "_source_sha256, unix_seconds(_source_modified_at), unix_micros(_ingested_at)"
    ) == [
        (file.sha256, file.stored.modified_at.timestamp(), started_at)
        for file in done.delivery.files
    ]
    assert [len(done.archived), inbox.names()] == [2, []]


def test_the_same_content_put_back_lands_nothing_and_is_archived(
    embedded_engine, home, inbox
) -> None:
    inbox.put("a.csv", APPLE)
    land(embedded_engine, FRUITS, TABLE, inbox.store, home)
    before = snapshots(embedded_engine)
    inbox.put("a.csv", APPLE)

    done = land(embedded_engine, FRUITS, TABLE, inbox.store, home)

    assert isinstance(done.outcome, Unchanged)
    assert snapshots(embedded_engine) == before
    assert inbox.names() == []


def test_what_was_published_and_not_archived_is_only_archived_next_time(
    embedded_engine, home, inbox, monkeypatch
) -> None:
    inbox.put("a.csv", APPLE, second=1)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(landing, "archive_files", killed)
        with pytest.raises(KeyboardInterrupt):
            land(embedded_engine, FRUITS, TABLE, inbox.store, home)
    inbox.put("b.csv", KIWI, second=2)

    done = land(embedded_engine, FRUITS, TABLE, inbox.store, home)

    assert done.outcome.added_rows == 1
    assert [row[3] for row in rows(embedded_engine)] == ["a.csv", "b.csv"]
    assert inbox.names() == []


def test_another_content_under_the_same_name_is_another_delivery(
    embedded_engine, home, inbox
) -> None:
    for content in (APPLE, KIWI):
        inbox.put("a.csv", content)
        land(embedded_engine, FRUITS, TABLE, inbox.store, home)

    assert [row[1] for row in rows(embedded_engine)] == ["Apple", "Kiwi"]


def test_where_nothing_waits_the_table_is_made_and_no_spark_is_started_for_it(
    embedded_engine, home, inbox
) -> None:
    done = land(embedded_engine, FRUITS, TABLE, inbox.store, home)

    assert isinstance(done.outcome, Unchanged)
    assert embedded_engine.catalog.has(FRUITS.table)

    def no_session():
        raise AssertionError("Spark was asked for")

    again = land(replace(embedded_engine, session=no_session), FRUITS, TABLE, inbox.store, home)
    assert isinstance(again.outcome, Unchanged)


def test_a_delivery_that_bronze_blocks_stays_in_the_inbox(embedded_engine, home, inbox) -> None:
    table = bronze_table(
        FRUITS, "Fruits as delivered.", rules=[not_null("berry", on_failure="block")]
    )
    inbox.put("b.csv", KIWI)

    done = land(embedded_engine, FRUITS, table, inbox.store, home)

    assert isinstance(done.outcome, Refused)
    assert inbox.names() == ["b.csv"]
    assert files(inbox.store, FRUITS.archive) == []


def test_a_delivery_of_no_rows_is_archived_and_commits_nothing(
    embedded_engine, home, inbox
) -> None:
    inbox.put("a.csv", "id,fruit,berry\n")

    done = land(embedded_engine, FRUITS, TABLE, inbox.store, home)

    assert isinstance(done.outcome, Unchanged)
    assert inbox.names() == []


def test_an_asset_may_compute_columns_of_its_own(embedded_engine, home, inbox) -> None:
    from lakehouse.tables.table import Column

    table = bronze_table(
        FRUITS, "Fruits as delivered.", extra=[Column("_number", "int", "The id as a number.")]
    )
    inbox.put("a.csv", APPLE)

    def compute(delivered):
        return delivered.selectExpr("*", "try_cast(id AS int) AS _number")

    land(embedded_engine, FRUITS, table, inbox.store, home, compute=compute)

    assert rows(embedded_engine, "id, _number") == [("1", 1)]


def test_personal_columns_keep_no_bounds_in_the_table(embedded_engine, home, inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "customer_id,email\n7,jane@example.com\n")

    land(embedded_engine, CUSTOMERS, bronze_table(CUSTOMERS, "Customers."), inbox.store, home)

    assert rows(embedded_engine, "customer_id, email, region", CUSTOMERS.table) == [
        ("7", "jane@example.com", None)
    ]
    table = embedded_engine.catalog.load(CUSTOMERS.table)
    (bounds,) = table.inspect.files().column("lower_bounds").to_pylist()
    assert table.schema().find_field("email").field_id not in dict(bounds)


def test_added_columns_are_null_where_a_file_lacks_them(
    embedded_engine, home, inbox_of
) -> None:
    feed = Feed("fruits", FRUITS.columns, FRUITS.table, on_new_column="add")
    inbox = inbox_of(feed)
    contents = [
        APPLE,
        "id,fruit,berry,origin\n2,Kiwi,true,Chile\n",
        "color,id,fruit,berry\nred,3,Fig,false\n",
        KIWI,
    ]
    for number, content in enumerate(contents):
        inbox.put(f"{number}.csv", content, second=number)
        if number != 1:
            land(embedded_engine, feed, TABLE, inbox.store, home)

    assert rows(embedded_engine, "fruit, origin, color") == [
        ("Apple", None, None), ("Kiwi", "Chile", None), ("Fig", None, "red"), ("Kiwi", None, None),
    ]  # fmt: skip
    declared, added = plan_landing_table(feed, TABLE, embedded_engine.catalog)
    assert added == ("origin", "color")
    assert planning.plan_now(embedded_engine, declared).is_empty


def test_a_column_may_be_called_as_what_spark_knows_of_a_file(
    spark, aws_settings, inbox_of
) -> None:
    feed = Feed("fruits", ["id", "_Metadata"], "bronze.raw_fruits")
    inbox = inbox_of(feed)
    inbox.put("a.csv", "id,_Metadata\n1,own\n")

    with lock_feed(feed, aws_settings.home, bucket=open_staging(aws_settings)) as ingest:
        delivery = collect_files(inbox.store, ingest)
        (row,) = read_staged_rows(spark, delivery).collect()

    assert (row["_Metadata"], row["_source_sha256"]) == ("own", delivery.files[0].sha256)


def test_what_is_staged_in_the_bucket_is_landed_and_gone(
    glue_engine, aws_settings, inbox
) -> None:
    inbox.put("a.csv", APPLE, second=1)
    inbox.put("b.csv", KIWI, second=2)
    bucket = open_staging(aws_settings)

    done = land(glue_engine, FRUITS, TABLE, inbox.store, aws_settings.home, bucket=bucket)

    assert done.delivery.ingest.rows.uri.startswith("s3://lake/staging/fruits/")
    assert rows(glue_engine, f"{COLUMNS}, _source_sha256") == [
        ("1", "Apple", "false", "a.csv", 1, done.delivery.files[0].sha256),
        ("2", "Kiwi", None, "b.csv", 1, done.delivery.files[1].sha256),
    ]
    assert bucket.store.all_versions("staging/") == []


def changed_in_between(monkeypatch, change) -> None:
    def collect_and_change(store, ingest, **options):
        delivery = collect_files(store, ingest, **options)
        change(delivery)
        return delivery

    monkeypatch.setattr(landing, "collect_files", collect_and_change)


def test_what_others_put_among_the_staged_rows_does_not_land(
    glue_engine, aws_settings, inbox, monkeypatch
) -> None:
    """A task that was given up may put what it read, whenever."""
    inbox.put("a.csv", APPLE)
    bucket = open_staging(aws_settings)

    def put_late(delivery) -> None:
        staged, (file,) = delivery.ingest.rows, delivery.files
        source = {"Bucket": "lake", "Key": f"{staged.prefix}{file.name}"}
        for sha256 in (file.sha256, "0" * 64):
            key = f"{staged.prefix}{staged.name(sha256, 0, by_executor=True)}"
            bucket.store.client.copy_object(Bucket="lake", Key=key, CopySource=source)

    changed_in_between(monkeypatch, put_late)
    land(glue_engine, FRUITS, TABLE, inbox.store, aws_settings.home, bucket=bucket)

    assert rows(glue_engine) == [("1", "Apple", "false", "a.csv", 1)]


@pytest.mark.parametrize(
    "compute",
    [lambda delivered: delivered, lambda delivered: delivered.where("id IS NOT NULL")],
    ids=["as delivered", "computed"],
)
def test_where_staged_rows_are_missing_nothing_lands_and_nothing_is_archived(
    glue_engine, aws_settings, inbox, monkeypatch, compute
) -> None:
    inbox.put("a.csv", APPLE, second=1)
    inbox.put("b.csv", KIWI, second=2)
    bucket = open_staging(aws_settings)
    changed_in_between(
        monkeypatch,
        lambda delivery: delivery.ingest.rows.remove(delivery.files[0].name),
    )

    with pytest.raises(LakehouseError, match=r"reads 1 rows of feed fruits.*the 2 that were"):
        land(
            glue_engine,
            FRUITS,
            TABLE,
            inbox.store,
            aws_settings.home,
            bucket=bucket,
            compute=compute,
        )

    assert rows(glue_engine) == []
    assert inbox.names() == ["a.csv", "b.csv"]


@pytest.mark.long
def test_rows_that_landed_before_or_that_the_function_leaves_out_are_not_missing(
    glue_engine, aws_settings, inbox
) -> None:
    bucket = open_staging(aws_settings)

    def deliver(compute):
        home = aws_settings.home
        land(glue_engine, FRUITS, TABLE, inbox.store, home, bucket=bucket, compute=compute)
        return rows(glue_engine, "id, _source_file")

    inbox.put("a.csv", APPLE)
    deliver(lambda delivered: delivered)
    inbox.put("a.csv", APPLE)
    inbox.put("b.csv", KIWI)
    assert deliver(lambda delivered: delivered) == [("1", "a.csv"), ("2", "b.csv")]
    inbox.put("c.csv", APPLE + "3,Fig,true\n")
    left = deliver(lambda delivered: delivered.where("fruit = 'Fig'"))
    assert left == [("1", "a.csv"), ("2", "b.csv"), ("3", "c.csv")]


def test_below_the_home_too_only_rows_of_the_delivery_are_read(spark, home, inbox) -> None:
    inbox.put("a.csv", APPLE)

    with lock_feed(FRUITS, home) as ingest:
        delivery = collect_files(inbox.store, ingest)
        staged = ingest.staging / "rows" / delivery.files[0].name
        shutil.copy(staged, staged.with_name("000000-executor.parquet"))
        read = read_staged_rows(spark, replace(delivery, by_executors=True))
        assert [row["id"] for row in read.collect()] == ["1"]
