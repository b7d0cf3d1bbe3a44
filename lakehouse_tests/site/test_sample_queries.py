"""The queries of a page run as shown, and read no personal columns."""

import re
from dataclasses import replace
from html import unescape

import pytest

from lakehouse.site.pages import make_pages, page_of
from lakehouse_tests.site.conftest import ADA, ORDERS

PYTHON = ("PyIceberg and pandas", "Polars")
_QUERY = re.compile(
    r"<summary>([^<]+)</summary>\s*<p.*?<pre[^>]*><code>(.*?)</code></pre>", re.S
)


def queries_of(facts) -> dict[str, str]:
    page = make_pages(facts)[page_of(ORDERS.name)]
    return {engine: unescape(text).strip() for engine, text in _QUERY.findall(page)}


@pytest.mark.parametrize("engine", PYTHON)
def test_a_query_in_python_prints_rows(facts, engine, capsys, monkeypatch):
    # Otherwise, Polars warns that another package would plan faster.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    exec(queries_of(facts)[engine], {})
    printed = capsys.readouterr().out

    assert "PAID" in printed
    assert ADA not in printed


def test_the_query_of_duckdb_prints_rows(facts, capsys):
    import duckdb
    from duckdb_extensions import import_extension

    # With a network, DuckDB installs them itself.
    duck = duckdb.connect()
    for extension in ("avro", "iceberg"):
        import_extension(extension, con=duck)
    exec(queries_of(facts)["DuckDB"].replace('duck.install_extension("iceberg")\n', ""), {})

    assert "PAID" in capsys.readouterr().out


def test_names_are_quoted_for_each_engine(facts):
    queries = queries_of(facts)

    assert list(queries) == ["Spark", "Athena and Trino", "DuckDB", *PYTHON]
    assert queries["Spark"] == (
        "SELECT `order_id`, `state`\nFROM `lakehouse`.`silver`.`orders`\nLIMIT 10"
    )
    assert queries["Athena and Trino"] == (
        'SELECT "order_id", "state"\nFROM "silver"."orders"\nLIMIT 10'
    )


def test_a_glue_catalog_is_opened_as_such(facts):
    queries = queries_of(replace(facts, catalog_uri=""))

    assert "load_catalog('lakehouse', type=\"glue\")" in queries["Polars"]
