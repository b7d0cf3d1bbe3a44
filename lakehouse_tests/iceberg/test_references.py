"""A row refers to rows of another table: those without a partner are counted and shown, and
block or warn.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published, Refused
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import content, rows_of, snapshot_id

pytestmark = pytest.mark.spark
SHOPS = IcebergTable(
    "silver.shops", "", [Column("id", "bigint"), Column("city", "string")], Append(once_by=())
)
SALES = IcebergTable(
    "silver.sales",
    "",
    [
        Column("id", "bigint"),
        Column("shop", "bigint"),
        Column("buyer", "string", personal=True),
    ],
    Append(once_by=()),
    rules=[references("shop", SHOPS.name, "id")],
)
SCHEMA = "id bigint, shop bigint, buyer string"


@pytest.fixture
def shops(filled_engine: Callable[..., Engine]) -> Engine:
    rows = [(1, "a"), (2, "b"), (2, "c")]
    return filled_engine(
        lambda engine: write(engine, SHOPS, rows_of(engine, "id bigint, city string", rows))
    )


def test_a_row_without_a_partner_is_refused_and_shown(shops: Engine) -> None:
    done = write(
        shops,
        SALES,
        rows_of(shops, SCHEMA, [(1, 1, "ann"), (2, 9, "bob"), (3, None, "cid"), (4, 2, "dan")]),
    )
    assert isinstance(done, Refused) and content(shops, SALES.name) == []
    (result,) = done.results
    assert (result.failed_rows, result.total_rows) == (1, 4)
    (row,) = result.sample
    assert (row["id"], row["shop"]) == (2, 9) and row["buyer"].startswith("masked:")


def test_those_that_are_tolerated_are_published(shops: Engine) -> None:
    table = replace(
        SALES, rules=[references("shop", SHOPS.name, "id", warn_above=0.1, fail_above=0.5)]
    )
    done = write(
        shops, table, rows_of(shops, SCHEMA, [(1, 1, None), (2, 9, None), (3, 2, None)])
    )
    assert isinstance(done, Published)
    assert [(result.level, result.failed_rows) for result in done.results] == [("warns", 1)]


def test_of_several_columns_all_must_agree(shops: Engine) -> None:
    table = replace(SALES, rules=[references(["shop", "buyer"], SHOPS.name, ["id", "city"])])
    done = write(
        shops,
        table,
        rows_of(shops, SCHEMA, [(1, 1, "a"), (2, 1, "b"), (3, 1, None), (4, 2, "c")]),
    )
    assert [
        (result.failed_rows, [row["id"] for row in result.sample]) for result in done.results
    ] == [(1, [2])]


def test_an_input_is_looked_at_as_the_write_reads_it(shops: Engine) -> None:
    """A shop that comes while the write runs is none that it knew."""

    def compute(shops_now):
        write(shops, SHOPS, rows_of(shops, "id bigint, city string", [(9, "z")]))
        return rows_of(shops, SCHEMA, [(1, 9, None)])()

    assert isinstance(write(shops, SALES, compute, {"shops_now": latest(SHOPS.name)}), Refused)
    assert isinstance(write(shops, SALES, rows_of(shops, SCHEMA, [(1, 9, None)])), Published)


def test_rows_may_refer_to_rows_that_come_with_them(embedded_engine: Engine) -> None:
    table = replace(SALES, rules=[references("shop", SALES.name, "id")])
    assert isinstance(
        write(embedded_engine, table, rows_of(embedded_engine, SCHEMA, [(1, 1, None)])),
        Published,
    )
    compute = rows_of(embedded_engine, SCHEMA, [(2, 1, None), (3, 2, None), (4, 5, None)])
    done = write(embedded_engine, table, compute)
    assert isinstance(done, Refused) and [row["id"] for row in done.results[0].sample] == [4]


def test_of_a_merge_what_changes_is_looked_at(shops: Engine) -> None:
    table = replace(SALES, write=Merge(on=["id"]), rules=[unique("id"), *SALES.rules])
    first = write(shops, table, rows_of(shops, SCHEMA, [(1, 1, None), (2, 2, None)]))
    done = write(
        shops, table, rows_of(shops, SCHEMA, [(1, 1, None), (2, 7, None), (3, 1, None)])
    )
    assert isinstance(first, Published) and isinstance(done, Refused)
    assert [(r.rule.name, r.failed_rows, r.total_rows) for r in done.reasons] == [
        ("references_shop", 1, 2)
    ]


def test_alone_the_whole_table_is_looked_at(shops: Engine) -> None:
    write(shops, replace(SALES, rules=[]), rows_of(shops, SCHEMA, [(1, 1, None), (2, 9, None)]))
    before = snapshot_id(shops, SALES.name)
    (result,) = evaluate(shops, SALES)
    assert (result.level, result.failed_rows, result.total_rows) == ("fails", 1, 2)
    assert snapshot_id(shops, SALES.name) == before


def test_a_table_that_is_not_there_is_named(embedded_engine: Engine) -> None:
    with pytest.raises(TableNotFound, match=r"no table silver\.shops"):
        write(embedded_engine, SALES, rows_of(embedded_engine, SCHEMA, [(1, 1, None)]))


@pytest.mark.long
def test_keys_may_be_called_as_what_is_counted(embedded_engine: Engine) -> None:
    table = IcebergTable(
        "silver.counts",
        "",
        [Column(name, "bigint") for name in ("added", "count", "total_rows", "rows")],
        Append(once_by=()),
        rules=[
            unique("added", "count", "total_rows", "rows"),
            unique("count", name="of_count", on_failure="warn"),
            references("added", "silver.counts", "total_rows", on_failure="warn"),
        ],
    )
    schema = "added bigint, count bigint, total_rows bigint, rows bigint"
    first = write(embedded_engine, table, rows_of(embedded_engine, schema, [(1, 1, 1, 1)]))
    rows = [(1, 1, 1, 1), (1, 2, 2, 2), (5, 3, 3, 3)]
    second = write(embedded_engine, table, rows_of(embedded_engine, schema, rows))

    assert isinstance(first, Published) and isinstance(second, Refused)
    assert {r.rule.name: (r.failed_rows, [*r.sample]) for r in second.results} == {
        "unique_added_count_total_rows_rows": (
            1,
            [{"added": 1, "count": 1, "total_rows": 1, "rows": 1, "_rows": 2}],
        ),
        "of_count": (1, [{"count": 1, "rows": 2}]),
        "references_added": (1, [{"added": 5, "count": 3, "total_rows": 3, "rows": 3}]),
    }


def test_many_rules_take_one_job_for_rows_and_one_for_keys(shops: Engine, count_jobs) -> None:
    plain = replace(SALES, rules=[])
    write(shops, plain, rows_of(shops, SCHEMA, [(at, 1, str(at)) for at in range(100)]))
    on_rows = [
        between("id", 0, high, on_failure="warn", name=f"id_{high}") for high in range(100, 110)
    ]
    on_keys = [
        unique("id"),
        unique("buyer"),
        *SALES.rules,
        references("id", SALES.name, name="self"),
    ]
    for rules, jobs in (
        (on_rows, 1),
        ([*on_rows, mean("id", 0)], 1),
        ([*on_rows, mean("id", 0), *on_keys], 2),
    ):
        with count_jobs() as counted:
            results = evaluate(shops, replace(SALES, rules=rules))
        assert all(result.passed for result in results)
        assert counted.jobs == jobs
