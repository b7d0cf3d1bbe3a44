"""What runs before a write, what waits for a person, and what becomes of an evolution that was
killed.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lakehouse.errors import PendingChanges
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import Plan, apply, create_table, ensure, plan_now
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import UNCHANGED_PROPERTY, read_history
from lakehouse.iceberg.read.pinned_frames import rows_at
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.conftest import on_embedded_alone, with_format_3
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.evolving import NAME, columns, declared

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


@with_format_3
def test_a_table_is_created_as_declared(engine: Engine) -> None:
    table = declared(
        columns=[
            Column("id", "bigint", "The key; it's ${HOME}.", required=True),
            *columns(
                at="timestamp",
                seen="timestamp_ntz",
                amount="decimal(10,2)",
                tags="array<string>",
            ),
            Column("mail", "string", personal=True),
        ],
        partitioning=["days(at)", "bucket(id, 4)"],
        sort_order=["id desc"],
        owner="data",
        format_version=3,
    )
    found = ensure(engine, table)
    assert [step.description for step in found.steps] == [
        "create the table with 6 columns, partitioned by days(at), bucket(id, 4), sorted by id"
        " desc nulls last",
        "upgrade the format from version 2 to 3",
    ]
    assert plan_now(engine, table).is_empty


@glue_in_test_all
def test_nothing_to_do_needs_no_spark(engine: Engine) -> None:
    ensure(engine, declared())
    insert(engine, "(1, 'a')")
    for change in (ensure, apply):
        assert change(without_spark(engine), declared()).is_empty


@glue_in_test_all
@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            declared(
                columns=[
                    Column("id", "bigint"),
                    Column("remark", "string", renamed_from="note"),
                ]
            ),
            (
                "silver.orders does not match its declaration: rename column note to remark."
                " Show all changes with `lakehouse plan`, and apply them with `lakehouse apply`."
            ),
        ),
        (declared(columns=columns(id="bigint"), dropped=["note"]), "drop column note"),
    ],
    ids=["rename", "drop"],
)
def test_a_rename_or_a_drop_stops_a_write_until_it_is_applied(
    engine: Engine, after: IcebergTable, message: str
) -> None:
    ensure(engine, declared())
    with pytest.raises(PendingChanges) as raised:
        ensure(engine, after)
    assert message in str(raised.value)
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
        "move column region first",
    ]
    assert read_history(engine, NAME).main.commit.run_id == "r2"


@glue_in_test_all
def test_a_personal_column_keeps_no_bounds_after_it_was_renamed(engine: Engine) -> None:
    ensure(
        engine,
        declared(
            columns=[Column("id", "bigint"), Column("mail", "struct<at:string>", personal=True)]
        ),
    )
    renamed = Column("contact", "struct<at:string>", personal=True, renamed_from="mail")
    apply(engine, declared(columns=[Column("id", "bigint"), renamed]))
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
    after = declared(
        columns=columns(id="bigint", note="string", a="int", b="int"),
        comment="New.",
        owner="data",
    )
    run_first_statement(engine, plan_now(engine, after))
    finish(engine, after)
    assert plan_now(engine, after).is_empty
    assert names(engine) == ["id", "note", "a", "b"]
    main = read_history(engine, NAME).main
    assert (main.parent_id, main.commit.kind) == (before, "evolution")


def test_an_evolution_killed_before_its_commit_is_committed_by_the_next_write(
    engine: Engine,
) -> None:
    ensure(engine, declared())
    before = insert(engine, "(1, 'a')")
    after = declared(columns=columns(id="bigint", note="string", a="int"))
    run_first_statement(engine, plan_now(engine, after))
    assert [step.description for step in plan_now(engine, after).steps] == [
        "commit the current schema, so that time travel shows it"
    ]
    ensure(engine, after)
    main = read_history(engine, NAME).main
    assert main.parent_id == before
    assert rows_at(engine, NAME, main.snapshot_id).columns == ["id", "note", "a"]


@with_format_3
def test_a_creation_killed_before_its_upgrade_is_finished(embedded_engine: Engine) -> None:
    engine, table = embedded_engine, declared(format_version=3)
    create_table(engine, table)
    ensure(engine, table)
    assert plan_now(engine, table).is_empty


def test_processes_that_create_and_evolve_a_table_at_once_agree(
    embedded_engine: Engine,
) -> None:
    after = declared(
        columns=columns(id="bigint", note="string", a="int", b="int"), comment="New."
    )
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
    assert sorted(
        file.path.split("/data/")[0].rsplit("/", 1)[1] for file in files(embedded_engine, NAME)
    ) == [
        "new",
        "old",
    ]
    assert (
        embedded_engine.sql(f"SELECT * FROM {embedded_engine.catalog.sql_name(NAME)}").count()
        == 2
    )
