"""What a plan says, without a JVM: each change of a declaration, against the state of the table
before it.
"""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.evolve.layout_changes import created_properties
from lakehouse.iceberg.evolve.planning import Plan, plan
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.tables.table import Column, IcebergTable, Merge, Versions
from lakehouse_tests.iceberg.evolving import columns, declared, state_like

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


def of(**types: str | Column) -> IcebergTable:
    return declared(columns=columns(**types))


CHANGES = {
    "new column at the end": (
        of(id="int"),
        of(id="int", note="string"),
        ["ADD COLUMN `note` string AFTER `id`"],
    ),
    "new column in front": (
        of(id="int"),
        of(note="string", id="int"),
        ["ADD COLUMN `note` string FIRST"],
    ),
    "int to bigint": (of(id="int"), of(id="bigint"), ["ALTER COLUMN `id` TYPE bigint"]),
    "field in a struct": (
        of(s="struct<a:int>"),
        of(s="struct<b:string,a:int>"),
        ["ADD COLUMN `s`.`b` string FIRST"],
    ),
    "field in an array of structs": (
        of(l="array<struct<a:int>>"),
        of(l="array<struct<a:int,b:int>>"),
        ["ADD COLUMN `l`.`element`.`b` int AFTER `a`"],
    ),
    "wider field in an array of structs": (
        of(l="array<struct<a:int>>"),
        of(l="array<struct<a:bigint>>"),
        ["ALTER COLUMN `l`.`element`.`a` TYPE bigint"],
    ),
    "renamed": (
        of(a="int"),
        of(b=Column("b", "int", renamed_from="a")),
        ["RENAME COLUMN `a` TO `b`"],
    ),
    "renamed, and the old name used anew": (
        of(a="int"),
        of(b=Column("b", "int", renamed_from="a"), a="string"),
        ["RENAME COLUMN `a` TO `b`", "ADD COLUMN `a` string AFTER `b`"],
    ),
    "renamed in a row": (
        of(a="int", b="int"),
        of(b=Column("b", "int", renamed_from="a"), c=Column("c", "int", renamed_from="b")),
        ["RENAME COLUMN `b` TO `c`", "RENAME COLUMN `a` TO `b`"],
    ),
    "renamed and widened": (
        of(a="int"),
        of(b=Column("b", "bigint", renamed_from="a")),
        ["RENAME COLUMN `a` TO `b`", "ALTER COLUMN `b` TYPE bigint"],
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
    "one column moved to the end": (
        of(a="int", b="int", c="int", d="int"),
        of(b="int", c="int", d="int", a="int"),
        ["ALTER COLUMN `a` AFTER `d`"],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_each_change_of_the_columns_becomes_its_statement(
    before: IcebergTable, after: IcebergTable, expected: list[str]
) -> None:
    found = planned(before, after)
    assert (sql(found), found.refusals) == (expected, ())


WITH_DAY = columns(id="bigint", ts="timestamp", region="string")
LAYOUTS = {
    "partitioned": ([], ["days(ts)"], ["ADD PARTITION FIELD days(`ts`)"]),
    "no longer partitioned": (["days(ts)"], [], ["DROP PARTITION FIELD days(`ts`)"]),
    "other transform of the same column": (
        ["days(ts)"],
        ["hours(ts)"],
        ["REPLACE PARTITION FIELD days(`ts`) WITH hours(`ts`)"],
    ),
    "the same in another order": (["days(ts)", "region"], ["region", "day(ts)"], []),
}


@pytest.mark.parametrize(("before", "after", "expected"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_each_change_of_the_partitioning_becomes_its_statement(
    before: list[str], after: list[str], expected: list[str]
) -> None:
    found = planned(
        declared(columns=WITH_DAY, partitioning=before),
        declared(columns=WITH_DAY, partitioning=after),
    )
    assert sql(found) == expected


def test_a_sort_order_leaves_the_distribution_mode_alone() -> None:
    found = planned(
        declared(columns=WITH_DAY),
        declared(columns=WITH_DAY, sort_order=["region", "ts desc nulls last"]),
    )
    assert sql(found) == [
        "WRITE LOCALLY ORDERED BY `region` ASC NULLS FIRST, `ts` DESC NULLS LAST"
    ]


def test_a_sort_order_taken_away_gives_the_distribution_mode_back() -> None:
    before = declared(columns=WITH_DAY, sort_order=["region"])
    assert sql(planned(before, declared(columns=WITH_DAY))) == [
        "WRITE UNORDERED",
        "UNSET TBLPROPERTIES IF EXISTS ('write.distribution-mode')",
    ]


def test_a_layout_made_from_a_renamed_column_stays() -> None:
    before = declared(columns=columns(a="int"), partitioning=["bucket(4, a)"], sort_order=["a"])
    after = declared(
        columns=[Column("b", "int", renamed_from="a")],
        partitioning=["bucket(4, b)"],
        sort_order=["b"],
    )
    assert sql(planned(before, after)) == ["RENAME COLUMN `a` TO `b`"]


def test_a_declaration_that_its_table_follows_needs_nothing() -> None:
    table = declared(
        columns=WITH_DAY,
        partitioning=["days(ts)"],
        sort_order=["id"],
        owner="me",
        properties={"x": "1"},
    )
    assert planned(table, table).is_empty


def test_a_missing_table_is_created() -> None:
    created, upgraded = plan(declared(sort_order=["id"], format_version=3), None).steps
    assert created.description == (
        "create the table with 2 columns, sorted by id asc nulls first"
    )
    assert upgraded.automatic


def test_additions_are_made_by_themselves_and_the_rest_waits() -> None:
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
    )
    found = planned(before, after)
    assert [step.description.split(" ")[0] for step in found.automatic] == [
        "widen",
        "add",
        "describe",
        "set",
    ]
    assert [step.description for step in found.waiting] == [
        "rename column a to x",
        "partition also by years(c)",
        "sort new files by b asc nulls first",
        "drop column d",
        "move column x after b",
    ]


def test_only_renames_and_drops_stop_a_write() -> None:
    before = declared(columns=columns(a="int", b="int", c="date", d="int"))
    after = declared(
        columns=[*columns(b="int"), Column("x", "int", renamed_from="a"), *columns(c="date")],
        partitioning=["years(c)"],
        sort_order=["b"],
        dropped=["d"],
        format_version=3,
        location="s3://b/other",
    )
    blocking = [
        step.description for step in planned(before, after).waiting if step.blocks_writes
    ]
    assert blocking == ["rename column a to x", "drop column d"]


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


def test_a_table_without_a_snapshot_needs_no_commit_of_its_schema() -> None:
    state = state_like(
        declared(), schema_id=3, snapshot_schema_id=None, has_snapshot=False, is_empty=True
    )
    assert plan(declared(), state).is_empty


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


def test_a_personal_struct_keeps_no_metrics_of_any_of_its_fields() -> None:
    table = declared(
        columns=[Column("who", "struct<name:string,mails:array<string>>", personal=True)]
    )
    properties = created_properties(table)
    assert properties["write.metadata.metrics.column.who.name"] == "none"
    assert properties["write.metadata.metrics.column.who.mails.element"] == "none"


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
def test_versions_without_a_key_that_no_rule_refuses_are_worth_a_warning(
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
