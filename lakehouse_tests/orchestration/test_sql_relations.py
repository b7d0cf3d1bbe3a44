"""Which tables a query names is told by its text."""

import pytest

from lakehouse.orchestration.functions.sql_function import named_tables, tokenize

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "query, names",
    [
        ("SELECT 1 FROM a", ["a"]),
        ("FROM a SELECT 1", ["a"]),
        ("TABLE a", ["a"]),
        ("SELECT * FROM a, b AS x, lake.silver.c", ["a", "b", "lake.silver.c"]),
        ("SELECT * FROM a x JOIN `b` ON x.k = b.k, c WHERE d IN (1, 2)", ["a", "b", "c"]),
        ("SELECT * FROM a LEFT JOIN (SELECT k FROM b GROUP BY k, v) USING (k)", ["a", "b"]),
        ("SELECT * FROM (a JOIN b USING (k)) JOIN ((SELECT 1 FROM c))", ["a", "b", "c"]),
        ("WITH own AS (SELECT * FROM a), two (k) AS (SELECT 1) SELECT * FROM own, two, b", ["a", "b"]),
        ("SELECT * FROM a UNION ALL SELECT k, v FROM b ORDER BY k, v", ["a", "b"]),
        ("SELECT (SELECT max(k) FROM b), v FROM a WHERE k IN (SELECT k FROM c)", ["b", "a", "c"]),
        # FROM that reads no table.
        ("SELECT extract(YEAR FROM t), trim(BOTH FROM v), k IS NOT DISTINCT FROM v FROM a", ["a"]),
        ("SELECT * FROM a WHERE k IS DISTINCT FROM v", ["a"]),
        ("SELECT * FROM range(10) JOIN a", ["a"]),
        ("SELECT * FROM VALUES (1, x), (y, 2) AS t(p, q) JOIN a", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(m) t AS k, v", ["a"]),
        ("SELECT * FROM a, LATERAL (SELECT k FROM b)", ["a", "b"]),
        ("SELECT 'FROM x', `FROM y` -- FROM z\n FROM a /* FROM w */", ["a"]),
        ("SELECT sum(v) OVER w, k FROM a WINDOW w AS (PARTITION BY k, v)", ["a"]),
        ("FROM a |> AGGREGATE sum(v), v GROUP BY k |> JOIN b USING (k)", ["a", "b"]),
        ("SELECT * FROM a PIVOT (sum(v) FOR k IN ('x', 'y'))", ["a"]),
    ],
)  # fmt: skip
def test_the_tables_after_from_and_join_are_named(query: str, names: list[str]) -> None:
    assert [table.name for table in named_tables(tokenize(query))] == names


def test_an_input_stays_one_where_the_query_defines_its_name_again() -> None:
    tokens = tokenize("WITH a AS (SELECT * FROM a), own AS (SELECT 1) SELECT * FROM a, own")
    assert [table.name for table in named_tables(tokens, ["a"])] == ["a", "a"]
