"""What Iceberg keeps of deleted rows goes, and no file of anybody else is touched."""

from dataclasses import replace
from datetime import date

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.remove_from_files import (
    clean_manifests,
    remove_from_files,
    rewrite_erased_files,
)
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse_tests.conftest import on_embedded_alone, with_erased_format_3
from lakehouse_tests.iceberg.erasure.people import (
    ANNA,
    ORDERS,
    REQUEST,
    branch_off,
    content,
    data_paths,
    files_with,
    fill,
    tag,
)
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, put_orphan, stored

DAY = date(2024, 1, 1)
NOTE = "anna lives here by the sea"
PREFIX = b"anna lives here"
"""Of a text, bounds in manifests keep 16 characters."""
MIXED = [(1, 7, "anna@example.org", NOTE, DAY), (2, 8, "ben@example.org", "b", DAY)]
HERS = [(3, 7, "anna@example.org", NOTE, DAY)]
OTHERS = [(4, 9, "cleo@example.org", "c", DAY)]
UNREAD = [(5, 9, "cleo@example.org", "d", DAY)]
EVERYONE_ELSE = sorted([MIXED[1], *OTHERS], key=repr)


def filled(engine: Engine) -> tuple[set[str], set[str]]:
    """Fill a table of three files; return all paths, and those without Anna."""
    fill(engine, ORDERS, MIXED)
    fill(engine, ORDERS, HERS)
    with_her = data_paths(engine, ORDERS)
    fill(engine, ORDERS, OTHERS)
    every = data_paths(engine, ORDERS)
    return every, every - with_her


def test_files_that_held_her_are_written_again_and_no_others(engine: Engine) -> None:
    before, without_her = filled(engine)
    sizes = {file.path: file.size_bytes for file in files(engine, ORDERS.name)}
    delete_rows(engine, ORDERS, [ANNA], REQUEST)

    result = rewrite_erased_files(engine, ORDERS.name, REQUEST)

    assert result.outcome == "done", result.reason
    held_her = before - without_her
    assert result.step_metrics["rewritten_files"] == len(held_her)
    assert result.step_metrics["rewritten_bytes"] == sum(sizes[path] for path in held_her)
    now = data_paths(engine, ORDERS)
    assert without_her < now
    assert held_her.isdisjoint(now)
    assert content(engine, ORDERS) == EVERYONE_ELSE
    assert {file.content for file in files(engine, ORDERS.name)} == {"data"}
    main = read_history(engine, ORDERS.name).main
    assert (main.operation, main.rows) == ("replace", 2)
    assert main.count("total-delete-files") == 0
    assert rewrite_erased_files(engine, ORDERS.name, REQUEST).outcome == "skipped"


def test_a_manifest_that_is_alone_is_cleaned_too(engine: Engine) -> None:
    from pyiceberg.expressions import EqualTo

    fill(engine, ORDERS, HERS)
    fill(engine, ORDERS, OTHERS)
    engine.catalog.load(ORDERS.name).delete(EqualTo("customer_id", 7))
    tag(engine, ORDERS, "month_end")
    head = read_history(engine, ORDERS.name).refs["main"]
    loaded = engine.catalog.load(ORDERS.name)
    told = [
        entry.data_file.lower_bounds
        for manifest in loaded.snapshot_by_id(head).manifests(loaded.io)
        for entry in manifest.fetch_manifest_entry(loaded.io, discard_deleted=False)
    ]
    assert any(PREFIX in value for bounds in told for value in bounds.values())

    result = clean_manifests(engine, ORDERS.name, REQUEST)

    assert (result.outcome, result.step_metrics["cleaned_refs"]) == ("done", 2)
    loaded = engine.catalog.load(ORDERS.name)
    for ref in loaded.metadata.refs.values():
        for manifest in loaded.snapshot_by_id(ref.snapshot_id).manifests(loaded.io):
            assert PREFIX not in loaded.io.new_input(manifest.manifest_path).open().read()
            entries = manifest.fetch_manifest_entry(loaded.io, discard_deleted=False)
            assert [entry.data_file.record_count for entry in entries] == [1]
    assert content(engine, ORDERS) == content(engine, ORDERS, "month_end") == OTHERS
    assert clean_manifests(engine, ORDERS.name, REQUEST).outcome == "skipped"


def test_files_without_a_name_go_at_once_and_named_ones_stay(engine: Engine) -> None:
    filled(engine)
    named = stored(engine, ORDERS.name)
    young = put_orphan(engine, "data/left.parquet", days_old=0, name=ORDERS.name)
    lost = put_orphan(engine, "metadata/lost.metadata.json", days_old=0, name=ORDERS.name)

    (result,) = remove_unnamed(engine, [ORDERS.name])

    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 2)
    assert stored(engine, ORDERS.name) == named
    assert not young.exists() and not lost.exists()
    assert len(content(engine, ORDERS)) == 4
    (again,) = remove_unnamed(engine, [ORDERS.name])
    assert again.outcome == "skipped"


def kinds_with_her(engine: Engine) -> list[str]:
    """Return the kinds of the files in the table's folder that hold her note, or its begin."""
    return files_with(engine, ORDERS, PREFIX)


@pytest.mark.parametrize(
    "format_version", [2, pytest.param(3, marks=[with_erased_format_3, pytest.mark.long])]
)
def test_nothing_that_is_kept_holds_her(embedded_engine: Engine, format_version: int) -> None:
    engine = embedded_engine
    orders = replace(ORDERS, format_version=2)
    _, without_her = filled(engine)
    if format_version == 2:
        tag(engine, orders, "month_end")
    else:
        name = engine.catalog.sql_name(orders.name)
        properties = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read'"
        engine.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
    assert set(kinds_with_her(engine)) == {"data", "manifest"}

    delete_rows(engine, orders, [ANNA], REQUEST)
    results = remove_from_files(engine, [orders], REQUEST, now=True)

    assert {result.outcome for result in results} <= {"done", "skipped"}, results
    assert kinds_with_her(engine) == []
    assert without_her < data_paths(engine, orders)
    in_spark = engine.spark.table(engine.catalog.sql_name(orders.name)).collect()
    assert sorted(map(tuple, in_spark), key=repr) == EVERYONE_ELSE
    if format_version == 2:
        assert content(engine, orders, "month_end") == EVERYONE_ELSE
    again = remove_from_files(engine, [orders], REQUEST, now=True)
    assert {result.outcome for result in again} == {"skipped"}


@pytest.mark.long
def test_nothing_that_is_kept_holds_a_row_of_hers_that_was_changed_before(
    embedded_engine: Engine,
) -> None:
    engine = embedded_engine
    _, without_her = filled(engine)
    name = engine.catalog.sql_name(ORDERS.name)
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in MERGE_ON_READ.items())
    engine.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})")
    engine.sql(f"UPDATE {name} SET note = 'another' WHERE customer_id = 7")
    tag(engine, ORDERS, "month_end")
    branch_off(engine, ORDERS, "experiment")

    delete_rows(engine, ORDERS, [ANNA], REQUEST)
    results = remove_from_files(engine, [ORDERS], REQUEST, now=True)

    assert {result.outcome for result in results} <= {"done", "skipped"}, results
    assert kinds_with_her(engine) == []
    for ref in ("main", "month_end", "experiment"):
        assert without_her < data_paths(engine, ORDERS, ref)
        in_spark = engine.sql(f"SELECT * FROM {name} VERSION AS OF '{ref}'").collect()
        assert sorted(map(tuple, in_spark), key=repr) == EVERYONE_ELSE


@on_embedded_alone("leaves a young file in a folder")
def test_what_a_reader_needs_and_young_files_are_due_later(embedded_engine: Engine) -> None:
    engine = embedded_engine
    filled(engine)
    read = read_history(engine, ORDERS.name).refs["main"]
    reader = replace(ORDERS, name="gold.reader")
    fill(engine, reader, OTHERS, inputs={ORDERS.name: read})
    fill(engine, ORDERS, UNREAD)
    put_orphan(engine, "data/left.parquet", days_old=0, name=ORDERS.name)
    delete_rows(engine, ORDERS, [ANNA], REQUEST)

    results = remove_from_files(
        engine, [ORDERS], REQUEST, now=False, readers={ORDERS.name: [reader.name]}
    )

    by_step = {result.step: result for result in results}
    expired, orphans = by_step["expire_snapshots"], by_step["remove_unnamed_files"]
    assert expired.outcome == orphans.outcome == "partial"
    assert "watermark of gold.reader" in expired.reason
    assert orphans.step_metrics["due_at"] > 0
    assert read in read_history(engine, ORDERS.name).snapshots


def test_old_unreferenced_files_are_removed_and_young_ones_retained(engine: Engine) -> None:
    fill(engine, ORDERS, OTHERS)
    old = put_orphan(engine, "data/old.parquet", days_old=2, name=ORDERS.name)
    young = put_orphan(engine, "data/young.parquet", days_old=0, name=ORDERS.name)

    results = remove_from_files(engine, [ORDERS], REQUEST, now=False)

    [orphans] = [result for result in results if result.step == "remove_unnamed_files"]
    assert (orphans.outcome, orphans.step_metrics["removed_files"]) == ("partial", 1)
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.parametrize("now", [False, True])
def test_a_reader_that_has_read_all_is_moved_past_the_erasure(
    embedded_engine: Engine, *, now: bool
) -> None:
    engine, reader = embedded_engine, replace(ORDERS, name="gold.reader")
    filled(engine)
    read = read_history(engine, ORDERS.name).refs["main"]
    fill(engine, reader, OTHERS, inputs={ORDERS.name: read})
    delete_rows(engine, ORDERS, [ANNA], REQUEST)

    remove_from_files(
        engine,
        [ORDERS],
        REQUEST,
        now=now,
        readers={ORDERS.name: [reader.name]},
        dependents={ORDERS.name: [reader.name]},
    )

    source = read_history(engine, ORDERS.name)
    assert set(source.snapshots) == {source.refs["main"]}
    assert read_history(engine, reader.name).watermark(ORDERS.name) == source.refs["main"]
    assert content(engine, reader) == OTHERS
    fill(engine, ORDERS, UNREAD)
    later = read_history(engine, ORDERS.name)
    pin = pin_since(later, source.refs["main"], later.refs["main"])
    assert (pin.since_snapshot_id, pin.rows) == (source.refs["main"], 1)
    again = remove_from_files(
        engine, [ORDERS], REQUEST, now=False, readers={ORDERS.name: [reader.name]}
    )
    assert "watermark of gold.reader" in str([result.reason for result in again])
