"""Merges: by key, rows that would not change are not rewritten, and a merge of nothing commits
nothing.
"""

from dataclasses import replace
from itertools import product

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve import row_level_mode
from lakehouse.iceberg.frames import broadcast_joins
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental, versions_of
from lakehouse.iceberg.read.pinned_frames import rows_at
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_result import Published, Refused, Unchanged
from lakehouse.iceberg.write import merge_rows, stage_statements
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse_tests.conftest import whatever_the_catalog, with_format_3
from lakehouse_tests.examples import glue_in_test_all, repeated
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.declarations import (
    DELIVERED,
    PEOPLE,
    content,
    data_files,
    delivery,
    people,
    refs,
    snapshot_id,
)

pytestmark = pytest.mark.spark
INPUTS = {"delivered": incremental("bronze.delivered")}
MODES = ["copy-on-write", "merge-on-read"]


def land(engine: Engine, file: str, *rows: tuple[str | None, str | None]) -> None:
    write(engine, DELIVERED, delivery(engine, file, list(rows)))


def merge(engine: Engine, table: IcebergTable = PEOPLE) -> Published | Refused | Unchanged:
    return write(engine, table, people, INPUTS)


@glue_in_test_all
def test_inserts_and_updates_by_key(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"), ("2", "bob"))
    merge(engine)
    land(engine, "b", ("3", "bob"), ("4", "eve"))
    done = merge(engine)
    assert isinstance(done, Published)
    assert (done.inserted_rows, done.updated_rows, done.row_count) == (1, 1, 3)
    assert content(engine, PEOPLE.name, "id", "name") == [(1, "ann"), (3, "bob"), (4, "eve")]


def row_levels(engine: Engine) -> tuple[str, str, int]:
    """Return how merges of `silver.people` change rows, how the last one did, and how many rows
    delete files take off.
    """
    history = read_history(engine, PEOPLE.name)
    assert history.main is not None and history.main.commit is not None
    (last, *_) = history.main.commit.row_level.split(",")
    deleted_rows = history.main.count("total-position-deletes")
    return history.properties["write.merge.mode"], last, deleted_rows


@pytest.mark.long
@whatever_the_catalog
@pytest.mark.parametrize(
    "version", [2, pytest.param(3, marks=[with_format_3, pytest.mark.long])]
)
def test_of_a_large_table_use_delete_files_unless_they_change_much(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(row_level_mode, "LARGE_MIB", 0)
    table = replace(PEOPLE, format_version=version)

    def merge_people(file: str, *numbers: int, added: int) -> tuple[str, str, int]:
        rows = [(str(number + added), f"name {number}") for number in numbers]
        land(engine, file, *rows)
        published = merge(engine, table)
        assert isinstance(published, Published)
        names = content(engine, PEOPLE.name, "name", "id")
        assert published.row_count == len(names)
        assert {(f"name {number}", number + added) for number in numbers} <= set(names)
        return row_levels(engine)

    merge_people("a", *range(20), added=0)
    much = merge_people("b", *range(6), added=100)
    assert much == ("merge-on-read", "copy-on-write", 0)
    little = merge_people("c", 0, 1, 20, added=200)
    assert little == ("merge-on-read", "merge-on-read", 2)
    again = merge_people("d", *range(6), added=300)
    # Of version 2, delete files would stay behind.
    assert again == (
        "merge-on-read",
        *(("copy-on-write", 0), ("merge-on-read", 8))[version == 2],
    )


@pytest.mark.scenario
@whatever_the_catalog
def test_that_died_while_it_changed_much_is_put_right_by_the_next(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_level_mode, "LARGE_MIB", 0)
    land(engine, "a", *((str(number), f"name {number}") for number in range(20)))
    merge(engine)
    land(engine, "b", *((str(number + 100), f"name {number}") for number in range(20)))
    with monkeypatch.context() as dying:
        dying.setattr(stage_statements, "_execute", _die)
        with pytest.raises(RuntimeError):
            merge(engine)
    assert read_history(engine, PEOPLE.name).properties["write.merge.mode"] == "copy-on-write"
    land(engine, "c", ("7", "new"))
    assert isinstance(merge(engine), Published)
    assert row_levels(engine)[0] == "merge-on-read"


def _die(*_: object) -> None:
    raise RuntimeError("died")


@pytest.mark.long
@whatever_the_catalog
def test_stamps_only_the_rows_that_change(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"), ("2", "bob"))
    merge(engine)
    before = dict(content(engine, PEOPLE.name, "name", "changed_at"))
    land(engine, "b", ("1", "ann"), ("3", "bob"))
    merge(engine)
    after = dict(content(engine, PEOPLE.name, "name", "changed_at"))
    assert after["ann"] == before["ann"] and after["bob"] > before["bob"]


@glue_in_test_all
def test_of_the_same_rows_commits_nothing_and_reads_on_from_there(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"), ("2", "bob"))
    merge(engine)
    before, files = snapshot_id(engine, PEOPLE.name), data_files(engine, PEOPLE.name)
    land(engine, "b", ("1", "ann"))
    assert isinstance(merge(engine), Unchanged)
    assert (snapshot_id(engine, PEOPLE.name), data_files(engine, PEOPLE.name)) == (
        before,
        files,
    )
    assert refs(engine, PEOPLE.name) == {"main"}
    watermark = read_history(engine, PEOPLE.name).watermark(DELIVERED.name)
    assert watermark == snapshot_id(engine, DELIVERED.name)
    assert merge(engine).pins["delivered"].rows == 0


@pytest.mark.long
@whatever_the_catalog
def test_looks_only_near_the_rows_that_it_merges(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the same key that breaks the promise of `near` is not found, which shows where
    was looked.
    """
    monkeypatch.setattr(merge_rows, "_is_small", lambda _: False)
    pruned = replace(
        PEOPLE,
        write=Merge(on=["name"], stamp="changed_at", prune_by=["id"]),
        rules=[castable("id", "bigint")],
    )
    land(engine, "a", ("1", "ann"), ("2", "bob"), (None, "cy"))
    merge(engine, pruned)
    land(engine, "b", ("1", "ann"), ("3", "bob"), (None, "cy"))
    done = merge(engine, pruned)
    assert isinstance(done, Published)
    assert (done.inserted_rows, done.updated_rows) == (1, 0)
    assert content(engine, PEOPLE.name, "id", "name") == [
        (1, "ann"),
        (2, "bob"),
        (3, "bob"),
        (None, "cy"),
    ]


@pytest.mark.long
@whatever_the_catalog
@pytest.mark.parametrize(
    ("joined", "mode", "new"),
    repeated(
        product(
            ["with all of the table", "few", "many", "many by a Bloom filter"],
            MODES,
            [(), (("eve", 7, False),)],
        ),
        tried=[
            ("few", "merge-on-read", (("eve", 7, False),)),
            ("many by a Bloom filter", "copy-on-write", ()),
        ],
        rest="long",
    ),
)
def test_few_rows_are_merged_as_many_are(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, mode: str, joined: str, new: tuple
) -> None:
    """A small table is compared with as it is. In another few are looked for by a join that
    sends them to all processes, and compared without what is nested at first; of many it is not
    known which values they have, and of a large table rows are dropped before it is shuffled.
    """
    if joined == "many":
        monkeypatch.setattr(merge_rows, "_FEW_VALUES", 1)
    if joined == "few":
        monkeypatch.setattr(merge_rows, "_is_small", lambda _: False)
    elif joined != "with all of the table":
        monkeypatch.setattr(merge_rows, "BROADCAST_KEY_LIMIT", 0)
        monkeypatch.setattr(merge_rows, "BROADCAST_ROW_LIMIT", 0)
    if joined == "many by a Bloom filter":
        filter_every_table(monkeypatch)
    table = replace(PEOPLE, rules=(), row_level=mode)

    def rows(*given: tuple[str | None, int, bool], mark: int = 1) -> DataFrame:
        frame = frame_of(engine.spark, "name string, id bigint, _deleted boolean", given)
        return frame.selectExpr("*", f"map('n', if(name = 'dan', {mark}, 1)) AS marks")

    write(
        engine,
        table,
        lambda: rows(*((name, 1, False) for name in ("ann", "bob", "cy", "dan", None))),
    )
    changes = [
        ("ann", 1, False),
        ("bob", 5, False),
        ("cy", 1, True),
        ("dan", 1, False),
        (None, 6, False),
        *new,
    ]
    done = write(engine, table, lambda: rows(*changes, mark=2))
    assert isinstance(done, Published)
    assert (done.inserted_rows, done.updated_rows, done.removed_rows) == (len(new), 3, 1)
    assert content(engine, table.name, "name", "id", "marks['n']") == [
        ("ann", 1, 1),
        ("bob", 5, 1),
        ("dan", 1, 2),
        *((name, number, 1) for name, number, _ in new),
        (None, 6, 1),
    ]


def filter_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a merge take a table of any size for a large one, and join it as one."""
    monkeypatch.setattr(broadcast_joins, "BROADCAST_ROW_LIMIT", 0)
    threshold = "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold"
    monkeypatch.setitem(broadcast_joins._WITH_BLOOM_FILTER, threshold, "0b")
    # A small table would be sent to all processes.
    broadcast = "spark.sql.autoBroadcastJoinThreshold"
    monkeypatch.setitem(broadcast_joins._WITH_BLOOM_FILTER, broadcast, "-1")


def some_people(engine: Engine, *rows: tuple[str | None, int]) -> DataFrame:
    frame = frame_of(engine.spark, "name string, id bigint", rows)
    return frame.selectExpr("*", "CAST(NULL AS map<string,int>) AS marks")


@glue_in_test_all
@pytest.mark.parametrize("mode", repeated(MODES, tried=["merge-on-read"], rest="long"))
def test_deletes_rows_of_which_the_key_alone_is_given(engine: Engine, mode: str) -> None:
    table = replace(PEOPLE, rules=(), row_level=mode)
    write(engine, table, lambda: some_people(engine, ("ann", 1), ("bob", 2), (None, 3)))

    def keys(*rows: tuple[str | None, bool]) -> DataFrame:
        return frame_of(engine.spark, "name string, _deleted boolean", rows)

    gone = write(engine, table, lambda: keys(("ann", True), (None, True), ("nobody", True)))
    assert isinstance(gone, Published)
    assert (gone.inserted_rows, gone.updated_rows, gone.removed_rows) == (0, 0, 2)
    assert content(engine, table.name, "id", "name") == [(2, "bob")]
    again = write(engine, table, lambda: keys(("ann", True), (None, True)))
    assert isinstance(again, Unchanged)


@whatever_the_catalog
def test_blocks_two_rows_of_one_key(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"), ("2", "ann"))
    done = merge(engine)
    assert isinstance(done, Refused)
    assert [(r.rule.name, r.failed_rows, list(r.sample)) for r in done.reasons] == [
        ("unique_name", 1, [{"name": "ann", "rows": 2}])
    ]
    assert not any(ref.startswith("audit_") for ref in refs(engine, PEOPLE.name))


@whatever_the_catalog
def test_finds_a_second_row_of_another_unique_column(engine: Engine) -> None:
    by_id = replace(PEOPLE, rules=[*PEOPLE.rules, unique("id")])
    land(engine, "a", ("1", "ann"))
    merge(engine, by_id)
    land(engine, "b", ("1", "bob"))
    done = merge(engine, by_id)
    assert isinstance(done, Refused) and [r.rule.name for r in done.reasons] == ["unique_id"]


@glue_in_test_all
def test_blocks_what_a_blocking_rule_forbids(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"))
    merge(engine)
    before = snapshot_id(engine, PEOPLE.name)
    land(engine, "b", ("2", "bob"), ("3", "nobody"))
    done = merge(engine)
    assert isinstance(done, Refused)
    (reason,) = done.reasons
    assert (reason.rule.name, reason.failed_rows, reason.sample[0]["name"]) == (
        "excluded_name",
        1,
        "nobody",
    )
    assert snapshot_id(engine, PEOPLE.name) == before == done.snapshot_id
    assert refs(engine, PEOPLE.name) == {"main", done.branch}
    assert rows_at(engine, PEOPLE.name, done.candidate_snapshot_id).count() == 3


@pytest.mark.long
def test_takes_few_jobs(embedded_engine: Engine, count_jobs) -> None:
    land(embedded_engine, "a", ("1", "ann"))
    merge(embedded_engine)
    land(embedded_engine, "b", ("2", "ann"))
    with count_jobs() as counted:
        merge(embedded_engine)
    assert counted.jobs <= 12


@whatever_the_catalog
def test_a_row_that_goes_counts_also_without_what_the_rules_ask_for(engine: Engine) -> None:
    """Delivered in one run with the row that it takes away, it came as a second of its key."""
    table = replace(PEOPLE, rules=[not_null("id")])
    inputs = {"delivered": versions_of(DELIVERED.name)}

    def compute(delivered: DataFrame) -> DataFrame:
        at = "TIMESTAMP '2026-01-01 00:00:00'"
        return delivered.selectExpr(
            "CAST(id AS bigint) AS id",
            "name",
            "map('a', 1) AS marks",
            "id IS NULL AS _deleted",
            f"{at} AS _ingested_at",
            f"{at} AS _source_modified_at",
            "_source_file",
            "_source_row",
        )

    land(engine, "a", ("1", "ann"), ("2", "bob"), (None, "ann"))
    write(engine, table, compute, inputs)
    assert content(engine, table.name, "id", "name") == [(2, "bob")]
