"""Which tables a query names is told by its text."""

import pytest

from lakehouse.orchestration.functions.sql_function import named_tables

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "query, names",
    [
        ("FROM a SELECT 1", ["a"]),
        ("SELECT * FROM a, b AS x, lake.silver.c", ["a", "b", "lake.silver.c"]),
        ("SELECT * FROM (a JOIN `b` USING (k)) JOIN ((SELECT 1 FROM c))", ["a", "b", "c"]),
        ("WITH own AS (SELECT * FROM a), two (k) AS (SELECT 1) SELECT * FROM own, two, b", ["a", "b"]),
        ("SELECT (SELECT max(k) FROM b), v FROM a WHERE k IN (SELECT k FROM c)", ["b", "a", "c"]),
        # FROM that reads no table.
        ("SELECT extract(YEAR FROM t), trim(BOTH FROM v), k IS NOT DISTINCT FROM v FROM a", ["a"]),
        ("SELECT * FROM range(10) JOIN a", ["a"]),
        ("SELECT * FROM VALUES (1, x), (y, 2) AS t(p, q) JOIN a", ["a"]),
        ("SELECT /*+ BROADCAST(x) */ 'FROM x', `FROM y` -- FROM z\n FROM a /* FROM w */", ["a"]),
        ("FROM a |> AGGREGATE sum(v), v GROUP BY k |> JOIN b USING (k)", ["a", "b"]),
        # Spark reports why, or can run it.
        ("SELECT * FROM", None),
        ("TABLE a", None),
    ],
)  # fmt: skip
def test_the_tables_after_from_and_join_are_named(query: str, names: list[str] | None) -> None:
    named = named_tables(query)
    assert (named and [table.name for table in named]) == names


def test_an_input_stays_one_where_the_query_defines_its_name_again() -> None:
    query = "WITH a AS (SELECT * FROM a), own AS (SELECT 1) SELECT * FROM a, own"
    assert [table.name for table in named_tables(query, ["a"]) or ()] == ["a", "a"]
