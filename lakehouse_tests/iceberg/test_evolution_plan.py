"""The plan of each change of a declaration, without a JVM."""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.evolve.planning import Plan, plan
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.tables.table import Column, IcebergTable, Merge, Versions
from lakehouse_tests.iceberg.evolving import columns, declared, of, state_like

CATALOG = Catalog("lake", {})
TABLE = "`lake`.`silver`.`orders`"


def planned(before: IcebergTable, after: IcebergTable) -> Plan:
    return plan(after, state_like(before))


def sql(found: Plan) -> list[str]:
    return [
        statement.removeprefix(f"ALTER TABLE {TABLE} ")
        for step in found.steps
        for statement in step.statements(CATALOG, "silver.orders")
        if "lakehouse.managed-properties" not in statement
    ]


CHANGES = {
    "new column in front": (
        of(id="int"),
        of(note="string", id="int"),
        ["ADD COLUMN `note` string FIRST"],
    ),
    "int to bigint": (of(id="int"), of(id="bigint"), ["ALTER COLUMN `id` TYPE bigint"]),
    "renamed": (
        of(a="int"),
        of(b=Column("b", "int", renamed_from="a")),
        ["RENAME COLUMN `a` TO `b`"],
    ),
    "renamed in a row": (
        of(a="int", b="int"),
        of(b=Column("b", "int", renamed_from="a"), c=Column("c", "int", renamed_from="b")),
        ["RENAME COLUMN `b` TO `c`", "RENAME COLUMN `a` TO `b`"],
    ),
    "renamed long ago": (of(b="int"), of(b=Column("b", "int", renamed_from="a")), []),
    "other letters of another case": (of(Fruit="string"), of(fruit="string"), []),
    "dropped": (
        of(a="int", b="int"),
        declared(columns=columns(a="int"), dropped=["b"]),
        ["DROP COLUMN `b`"],
    ),
    "dropped long ago": (of(a="int"), declared(columns=columns(a="int"), dropped=["b"]), []),
    "field dropped from a struct": (
        of(s="struct<a:int,b:int>"),
        declared(columns=columns(s="struct<a:int>"), dropped=["s.b"]),
        ["DROP COLUMN `s`.`b`"],
    ),
    "comment of a column": (
        of(a=Column("a", "int", "old")),
        of(a=Column("a", "int", "new")),
        ["ALTER COLUMN `a` COMMENT 'new'"],
    ),
    "comment of the table": (
        declared(),
        declared(comment="All orders."),
        [f"COMMENT ON TABLE {TABLE} IS 'All orders.'"],
    ),
    "optional": (
        of(a=Column("a", "int", required=True)),
        of(a="int"),
        ["ALTER COLUMN `a` DROP NOT NULL"],
    ),
    "another order": (of(a="int", b="int"), of(b="int", a="int"), []),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_each_change_of_the_columns_becomes_its_statement(
    before: IcebergTable, after: IcebergTable, expected: list[str]
) -> None:
    found = planned(before, after)
    assert (sql(found), found.denied) == (expected, ())


WITH_DAY = columns(id="bigint", ts="timestamp", region="string")
RENAMED = columns(
    id="bigint", ts="timestamp", area=Column("area", "string", renamed_from="region")
)
DAYS, SORTED = {"partitioning": ["days(ts)"]}, {"sort_order": ["region", "ts desc nulls last"]}
LAYOUTS = {
    "partitioned": ({}, DAYS, ["ADD PARTITION FIELD days(`ts`)"]),
    "no longer partitioned": (DAYS, {}, ["DROP PARTITION FIELD days(`ts`)"]),
    "the same in another order": (
        {"partitioning": ["days(ts)", "region"]},
        {"partitioning": ["region", "day(ts)"]},
        [],
    ),
    # The distribution mode stays as it is, and is restored.
    "sorted": (
        {},
        SORTED,
        ["WRITE LOCALLY ORDERED BY `region` ASC NULLS FIRST, `ts` DESC NULLS LAST"],
    ),
    "no longer sorted": (
        SORTED,
        {},
        ["WRITE UNORDERED", "UNSET TBLPROPERTIES IF EXISTS ('write.distribution-mode')"],
    ),
    "made from a renamed column": (
        {"partitioning": ["bucket(4, region)"], "sort_order": ["region"]},
        {"columns": RENAMED, "partitioning": ["bucket(4, area)"], "sort_order": ["area"]},
        ["RENAME COLUMN `region` TO `area`"],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_each_change_of_the_layout_becomes_its_statements(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    tables = [declared(**{"columns": WITH_DAY, **parts}) for parts in (before, after)]
    assert sql(planned(*tables)) == expected


def test_a_missing_table_is_created() -> None:
    created, upgraded = plan(declared(sort_order=["id"], format_version=3), None).steps
    assert created.description == (
        "create the table with 2 columns, sorted by id asc nulls first"
    )
    assert upgraded.automatic


def test_additions_are_made_by_themselves_and_only_renames_and_drops_stop_a_write() -> None:
    before = declared(
        columns=columns(a="int", b="int", c="date", d="int"), partitioning=["bucket(2, b)"]
    )
    after = declared(
        columns=[
            *columns(e="int", b="bigint"),
            Column("x", "int", renamed_from="a"),
            *columns(c="date"),
        ],
        partitioning=["bucket(2, b)", "years(c)"],
        sort_order=["b"],
        dropped=["d"],
        comment="New.",
        owner="data",
        location="s3://b/other",
        format_version=3,
    )
    found = planned(before, after)
    assert [step.order.name for step in found.automatic] == [
        "WIDEN",
        "ADD",
        "COMMENT",
        "PROPERTIES",
    ]
    assert [(step.order.name, step.blocks_writes) for step in found.waiting] == [
        ("RENAME", True),
        ("PARTITIONING", False),
        ("SORT_ORDER", False),
        ("DROP", True),
        ("LOCATION", False),
        ("FORMAT", False),
    ]


@pytest.mark.parametrize(
    ("there", "declared_as", "moves"),
    [
        ("file:/w/orders", "/w/orders", False),
        ("file:///w/orders", "file:/w/orders/", False),
        ("s3://b/a#1", "s3://b/a#1", False),
        ("s3://b/a#1", "s3://b/a#2", True),
        ("s3://b/a?x", "s3://b/a", True),
        ("s3://b/orders", "s3://c/orders", True),
        ("s3://b/orders", "s3a://b/orders", True),
    ],
)
def test_a_location_moves_where_it_is_another(
    there: str, declared_as: str, moves: bool
) -> None:
    found = plan(declared(location=declared_as), state_like(declared(), location=there))
    assert [step.description for step in found.waiting] == (
        [f"write new files below {declared_as} rather than {there}"] if moves else []
    )


def test_nothing_waits_where_nothing_was_written_but_renames_and_drops() -> None:
    before, after = (
        declared(columns=WITH_DAY),
        declared(columns=WITH_DAY, partitioning=["days(ts)"], sort_order=["id"]),
    )
    assert plan(after, state_like(before, is_empty=True, has_snapshot=False)).waiting == ()


def test_a_schema_that_no_commit_carries_is_committed() -> None:
    found = plan(declared(), state_like(declared(), schema_id=3, snapshot_schema_id=2))
    assert [step.description for step in found.steps] == [
        "commit the current schema, so that time travel shows it"
    ]


def test_a_property_taken_out_of_the_declaration_is_unset_and_others_stay() -> None:
    before = declared(properties={"read.split.target-size": "1", "gone": "x"})
    state = state_like(before)
    state = replace(state, properties={**state.properties, "foreign": "y"})
    (step,) = plan(declared(properties={"read.split.target-size": "2"}), state).steps
    unset, values = step.clauses
    assert unset == "UNSET TBLPROPERTIES IF EXISTS ('gone')"
    assert "'read.split.target-size' = '2'" in values
    assert "foreign" not in values


def of_merged_orders(mib: int, **parts: Any) -> Plan:
    """Return the plan of a merged table that writes whole files and has become so large."""
    table = declared(write=Merge(on=["id"]), **parts)
    whole_files = replace(table, row_level="copy-on-write")
    return plan(table, state_like(whole_files, main_bytes=mib * 1024**2))


def test_a_merged_table_that_has_grown_uses_delete_files_by_itself() -> None:
    (step,) = of_merged_orders(16).automatic
    assert step.description == (
        "change rows by merge-on-read, as its files have 16 MiB or more: set"
        " write.delete.mode=merge-on-read, write.merge.mode=merge-on-read,"
        " write.update.mode=merge-on-read"
    )


@pytest.mark.parametrize(
    ("mib", "parts"),
    [
        (15, {}),
        (16, {"row_level": "copy-on-write"}),
        (16, {"properties": {"write.merge.mode": "copy-on-write"}}),
    ],
    ids=["small", "declared", "declared as a property"],
)
def test_a_merged_table_writes_whole_files(mib: int, parts: dict[str, Any]) -> None:
    assert of_merged_orders(mib, **parts).is_empty


def test_format_version_3_names_who_does_not_read_it() -> None:
    (warning,) = planned(declared(), declared(format_version=3)).warnings
    assert "Amazon Athena does not read it" in warning


def test_a_column_that_becomes_personal_is_warned_of() -> None:
    (warning,) = planned(
        of(mail="string"), of(mail=Column("mail", "string", personal=True))
    ).warnings
    assert "silver.orders: mail is personal from now on" in warning


@pytest.mark.parametrize(
    ("rules", "warns"),
    [
        ([castable("k", "bigint")], True),
        ([not_null("k", on_failure="warn")], True),
        ([not_null("k")], False),
        ([not_null("k", on_failure="block")], False),
    ],
    ids=["none", "warns", "quarantines", "blocks"],
)
def test_versions_without_a_key_that_no_rule_rejects_are_worth_a_warning(
    rules: list[Any], warns: bool
) -> None:
    table = IcebergTable(
        "silver.of_keys",
        "Rows.",
        [Column("k", "bigint"), Column("n", "bigint")],
        write=Merge(on="k"),
        versions=Versions("k", "n"),
        rules=rules,
    )
    said = [warning for warning in plan(table, None).warnings if "versions of one" in warning]
    assert bool(said) == warns
    assert all("declare not_null('k')" in warning for warning in said)
