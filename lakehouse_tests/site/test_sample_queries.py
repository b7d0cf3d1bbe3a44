"""The queries that a page shows run as they are, and show nothing of people."""

import pytest

from lakehouse.site.sample_queries import sample_queries
from lakehouse_tests.site.conftest import ADA, ORDERS, table_of

PYTHON = ("PyIceberg and pandas", "Polars")


@pytest.fixture
def queries(facts):
    found = sample_queries(table_of(facts, ORDERS.name), facts.catalog_uri)
    return {query.engine: query.text for query in found}


def test_there_are_five(queries):
    assert list(queries) == ["Spark", "Athena and Trino", "DuckDB", *PYTHON]


@pytest.mark.parametrize("engine", PYTHON)
def test_a_query_in_python_prints_rows(queries, engine, capsys, monkeypatch):
    # Without it, Polars warns that another package would plan faster.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    exec(queries[engine], {})
    printed = capsys.readouterr().out

    assert "PAID" in printed
    assert ADA not in printed


def test_the_query_of_duckdb_prints_rows(queries, capsys):
    import duckdb
    from duckdb_extensions import import_extension

    # Where there is a network, DuckDB brings them itself.
    duck = duckdb.connect()
    for extension in ("avro", "iceberg"):
        import_extension(extension, con=duck)
    text = queries["DuckDB"].replace('duck.install_extension("iceberg")\n', "")
    exec(text, {})

    assert "PAID" in capsys.readouterr().out


def test_names_are_quoted_as_each_engine_does(queries):
    assert queries["Spark"] == (
        "SELECT `order_id`, `state`\nFROM `lakehouse`.`silver`.`orders`\nLIMIT 10"
    )
    assert queries["Athena and Trino"] == (
        'SELECT "order_id", "state"\nFROM "silver"."orders"\nLIMIT 10'
    )


def test_a_catalog_in_glue_is_opened_as_such(facts):
    found = sample_queries(table_of(facts, ORDERS.name), "")

    assert "load_catalog('lakehouse', type=\"glue\")" in found[3].text
