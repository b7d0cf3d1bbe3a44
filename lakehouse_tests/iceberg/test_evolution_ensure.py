"""Changes that run before a write, changes that wait, and killed evolutions."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.errors import PendingChanges
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import Plan, apply, create_table, ensure, plan_now
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.unchanged_watermarks import UNCHANGED_PROPERTY
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.conftest import on_embedded_alone, with_format_3
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.evolving import NAME, columns, declared, of

REGIONS = columns(id="bigint", region="string")


def names(engine: Engine) -> list[str]:
    return [field.name for field in engine.catalog.load(NAME).schema().fields]


def insert(engine: Engine, values: str) -> int:
    engine.sql(f"INSERT INTO {engine.catalog.sql_name(NAME)} VALUES {values}")
    return read_history(engine, NAME).main.snapshot_id


def without_spark(engine: Engine) -> Engine:
    def refuse() -> None:
        raise AssertionError("Spark was asked for")

    return replace(engine, session=refuse)


@glue_in_test_all
def test_nothing_to_do_needs_no_spark(engine: Engine) -> None:
    ensure(engine, declared())
    insert(engine, "(1, 'a')")
    for change in (ensure, apply):
        assert change(without_spark(engine), declared()).is_empty


@glue_in_test_all
def test_a_rename_stops_a_write_until_it_is_applied(engine: Engine) -> None:
    after = of(id="bigint", remark=Column("remark", "string", renamed_from="note"))
    ensure(engine, declared())
    with pytest.raises(PendingChanges, match="rename column note to remark"):
        ensure(engine, after)
    assert names(engine) == ["id", "note"]
    apply(engine, after)
    assert ensure(engine, after).is_empty


@glue_in_test_all
def test_additions_run_by_themselves_while_the_rest_waits(engine: Engine) -> None:
    ensure(engine, declared(columns=REGIONS))
    insert(engine, "(1, 'north')")
    after = declared(
        columns=columns(region="string", id="bigint", amount="int"), partitioning=["region"]
    )
    ensure(engine, after, run_id="r2")
    assert names(engine) == ["id", "amount", "region"]
    assert [step.description for step in plan_now(engine, after).steps] == [
        "partition also by region",
    ]
    assert read_history(engine, NAME).main.commit.run_id == "r2"


@glue_in_test_all
def test_a_personal_column_keeps_no_bounds_after_it_was_renamed(engine: Engine) -> None:
    mail = Column("mail", "struct<at:string>", personal=True)
    ensure(engine, of(id="bigint", mail=mail))
    apply(engine, of(id="bigint", contact=replace(mail, name="contact", renamed_from="mail")))
    insert(engine, "(1, named_struct('at', 'x@example.org'))")
    (metrics,) = engine.sql(
        f"SELECT readable_metrics FROM {engine.catalog.sql_name(NAME)}.files"
    ).collect()[0]
    assert metrics["id"]["upper_bound"] == 1
    assert metrics["contact.at"]["upper_bound"] is None


def run_first_statement(engine: Engine, found: Plan) -> None:
    engine.sql(found.steps[0].statements(engine.catalog, found.table)[0])


@glue_in_test_all
@pytest.mark.parametrize("finish", [ensure, apply])
def test_an_evolution_killed_between_two_changes_is_finished(
    engine: Engine, finish: Callable[[Engine, IcebergTable], Plan]
) -> None:
    ensure(engine, declared())
    before = insert(engine, "(1, 'a')")
    after = replace(of(id="bigint", note="string", a="int", b="int"), comment="New.")
    run_first_statement(engine, plan_now(engine, after))
    finish(engine, after)
    assert plan_now(engine, after).is_empty
    assert names(engine) == ["id", "note", "a", "b"]
    main = read_history(engine, NAME).main
    assert (main.parent_id, main.commit.kind) == (before, "evolution")


@with_format_3
def test_a_creation_killed_before_its_upgrade_is_finished(embedded_engine: Engine) -> None:
    engine, table = embedded_engine, declared(format_version=3)
    create_table(engine, table)
    ensure(engine, table)
    assert plan_now(engine, table).is_empty


def test_processes_that_create_and_evolve_a_table_at_once_agree(
    embedded_engine: Engine,
) -> None:
    after = replace(of(id="bigint", note="string", a="int", b="int"), comment="New.")
    for table in (declared(), after):
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(ensure, embedded_engine, table) for _ in range(4)]:
                done.result()
        assert plan_now(embedded_engine, table).is_empty


@glue_in_test_all
def test_a_watermark_that_a_property_notes_outlives_the_commit_of_a_schema(
    engine: Engine,
) -> None:
    ensure(engine, declared())
    noted = json.dumps(
        {"snapshot": str(insert(engine, "(1, 'a')")), "inputs": {"bronze.raw": "42"}}
    )
    name = engine.catalog.sql_name(NAME)
    engine.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('{UNCHANGED_PROPERTY}' = {literal(noted)})"
    )
    ensure(engine, declared(columns=columns(id="bigint", note="string", a="int")))
    assert read_history(engine, NAME).watermark("bronze.raw") == 42


@on_embedded_alone("what it says is of a folder")
def test_a_table_moves_with_its_location_and_keeps_its_rows(embedded_engine: Engine) -> None:
    root = embedded_engine.catalog.spark["warehouse"]
    ensure(embedded_engine, declared(location=f"{root}/old"))
    insert(embedded_engine, "(1, 'a')")
    after = declared(location=f"{root}/new")
    (waiting,) = ensure(embedded_engine, after).waiting
    assert waiting.description.startswith(
        f"write new files below {root}/new rather than file:/"
    )
    apply(embedded_engine, after)
    insert(embedded_engine, "(2, 'b')")
    assert plan_now(embedded_engine, after).is_empty
    folders = [Path(file.path).parents[1].name for file in files(embedded_engine, NAME)]
    assert sorted(folders) == ["new", "old"]
    name = embedded_engine.catalog.sql_name(NAME)
    assert embedded_engine.sql(f"SELECT * FROM {name}").count() == 2
