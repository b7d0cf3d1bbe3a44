"""A row refers to rows of another table: those without a partner are counted and shown, and
block or warn.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.iceberg.values.write_result import Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.iceberg.declarations import content, put, rows_of

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
    return filled_engine(lambda engine: put(engine, SHOPS, rows))


def test_a_row_without_a_partner_is_blocked_and_shown(shops: Engine) -> None:
    done = put(shops, SALES, [(1, 1, "ann"), (2, 9, "bob"), (3, None, "cid"), (4, 2, "dan")])
    assert isinstance(done, Refused) and content(shops, SALES.name) == []
    (result,) = done.results
    assert (result.failed_rows, result.total_rows) == (1, 4)
    (row,) = result.sample
    assert (row["id"], row["shop"]) == (2, 9) and row["buyer"].startswith("masked:")


def test_those_that_are_tolerated_are_published(shops: Engine) -> None:
    table = replace(
        SALES, rules=[references("shop", SHOPS.name, "id", warn_above=0.1, fail_above=0.5)]
    )
    done = put(shops, table, [(1, 1, None), (2, 9, None), (3, 2, None)], schema=SCHEMA)
    assert isinstance(done, Published)
    assert [(result.level, result.failed_rows) for result in done.results] == [("warns", 1)]


def test_of_several_columns_all_must_agree(shops: Engine) -> None:
    table = replace(SALES, rules=[references(["shop", "buyer"], SHOPS.name, ["id", "city"])])
    done = put(
        shops, table, [(1, 1, "a"), (2, 1, "b"), (3, 1, None), (4, 2, "c")], schema=SCHEMA
    )
    assert [
        (result.failed_rows, [row["id"] for row in result.sample]) for result in done.results
    ] == [(1, [2])]


def test_an_input_is_looked_at_as_the_write_reads_it(shops: Engine) -> None:
    """A shop that comes while the write runs is none that it knew."""

    def compute(shops_now):
        put(shops, SHOPS, [(9, "z")])
        return rows_of(shops, SCHEMA, [(1, 9, None)])()

    assert isinstance(write(shops, SALES, compute, {"shops_now": latest(SHOPS.name)}), Refused)
    assert isinstance(put(shops, SALES, [(1, 9, None)]), Published)


def test_rows_may_refer_to_rows_that_come_with_them(embedded_engine: Engine) -> None:
    table = replace(SALES, rules=[references("shop", SALES.name, "id")])
    assert isinstance(put(embedded_engine, table, [(1, 1, None)], schema=SCHEMA), Published)
    compute = rows_of(embedded_engine, SCHEMA, [(2, 1, None), (3, 2, None), (4, 5, None)])
    done = write(embedded_engine, table, compute)
    assert isinstance(done, Refused) and [row["id"] for row in done.results[0].sample] == [4]


def test_a_table_that_is_not_there_is_named(embedded_engine: Engine) -> None:
    with pytest.raises(TableNotFound, match=r"no table silver\.shops"):
        put(embedded_engine, SALES, [(1, 1, None)])


def test_many_rules_take_one_job_for_rows_and_one_for_keys(shops: Engine, count_jobs) -> None:
    plain = replace(SALES, rules=[])
    put(shops, plain, [(at, 1, str(at)) for at in range(100)], schema=SCHEMA)
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
