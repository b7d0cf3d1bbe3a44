"""Column lineage is what a declaration or a query says, and nothing else."""

from pathlib import Path

import pytest

from lakehouse.iceberg.read.inputs import Input, as_of, changed_keys, latest, versions_of
from lakehouse.orchestration.column_lineage import (
    COLUMN_LINEAGE,
    PassedOn,
    lineage_metadata,
    passed_on,
)
from lakehouse.orchestration.sql_function import SqlFunction
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.sql_tokens import tokenize
from lakehouse.tables.table import Column, IcebergTable, Merge, Overwrite

pytestmark = pytest.mark.unit

COLUMNS = {"a": ["id", "name", "v"], "b": ["id", "price"]}


def shown(passed: list[PassedOn]) -> str:
    return ", ".join(f"{one.name}={one.input_name}.{one.source}" for one in passed)


@pytest.mark.parametrize(
    "query, said",
    [
        ("SELECT name, v AS w, Id AS `key` FROM a", "name=a.name, w=a.v, key=a.id"),
        ("SELECT DISTINCT x.name n FROM a x", "n=a.name"),
        ("SELECT *, v + 1 AS w FROM a", "id=a.id, name=a.name, v=a.v"),
        ("SELECT x.*, price FROM a AS x LEFT JOIN b ON x.id = b.id", "id=a.id, name=a.name, v=a.v, price=b.price"),
        ("SELECT name, count(1) AS v FROM a GROUP BY name", "name=a.name"),
        ("SELECT name AS x FROM a, b WHERE a.id IN (SELECT id FROM b)", "x=a.name"),
        # Of both, or of none of them.
        ("SELECT id FROM a JOIN b USING (id)", ""),
        ("SELECT current_date AS day, 1 AS v, 'name' AS name, upper(name), -v AS w FROM a", ""),
        ("SELECT name.first, v[1] AS x, v::int FROM a", ""),
        # Of what is not an input, or is put together of several.
        ("SELECT name FROM (SELECT upper(name) AS name FROM a)", ""),
        ("SELECT price FROM a JOIN (SELECT 1 AS price) USING (id)", ""),
        ("SELECT name FROM other", ""),
        ("WITH a AS (SELECT 1 AS name) SELECT name FROM a", ""),
        ("SELECT name FROM a UNION SELECT upper(name) FROM a", ""),
        ("SELECT k AS id FROM a LATERAL VIEW explode(v) t AS k, id", ""),
    ],
)  # fmt: skip
def test_a_query_passes_on_what_it_names_alone(query: str, said: str) -> None:
    assert shown(passed_on(tokenize(query), COLUMNS)) == said


FEED = Feed(
    name="visits",
    table="bronze.visits",
    columns=[FeedColumn("visit_id"), FeedColumn("day"), FeedColumn("note")],
)
RAW = bronze_table(FEED, "As delivered.")
VISITS = IcebergTable(
    name="silver.visits",
    comment="Visits.",
    rows_of=RAW,
    columns=[
        Column("visit_id", "bigint"),
        Column("visited_on", "date", renamed_from="day"),
        Column("note", "string", cast=False),
        Column("length", "int", "Of the note."),
        Column("changed_at", "timestamp", "When it was last written."),
    ],
    write=Merge(on="visit_id", stamp="changed_at"),
)
NAMES = IcebergTable(
    name="gold.names",
    comment="Names.",
    columns=[Column("id", "bigint"), Column("day", "date"), Column("notes", "bigint")],
    write=Overwrite(),
)
DECLARED = {table.name: table for table in (RAW, VISITS, NAMES)}


def said_of(
    table: IcebergTable, compute: object, inputs: dict[str, Input]
) -> dict[str, list[tuple[str, str]]]:
    metadata = lineage_metadata(table, compute, inputs, DECLARED)  # type: ignore[arg-type]
    if not metadata:
        return {}
    return {
        name: [(".".join(dep.asset_key.path), dep.column_name) for dep in deps]
        for name, deps in metadata[COLUMN_LINEAGE].deps_by_column.items()
    }


def test_a_table_of_delivered_rows_has_its_columns_of_there() -> None:
    inputs = {"delivered": versions_of(RAW)}
    said = said_of(VISITS, lambda delivered: delivered, inputs)
    assert said == {
        "visit_id": [("bronze.visits", "visit_id")],
        "visited_on": [("bronze.visits", "day")],
    }
    assert said_of(VISITS, lambda other: other, {"other": latest(NAMES)}) == {}
    assert said_of(NAMES, lambda visits: visits, {"visits": latest(VISITS)}) == {}


@pytest.mark.parametrize(
    "visits, said",
    [
        (latest(VISITS), {"id": "visit_id", "day": "visited_on"}),
        (changed_keys(VISITS, of="visit_id", by="visited_on"), {"id": "visit_id"}),
        # A past state may have had other columns.
        (as_of(VISITS, tag="then"), {}),
        (latest("silver.elsewhere"), {}),
    ],
)
def test_a_query_says_it_of_the_tables_that_are_declared(
    tmp_path: Path, visits: Input, said: dict[str, str]
) -> None:
    file = tmp_path / "names.sql"
    file.write_text("SELECT visit_id AS id, visited_on AS day, length AS unknown FROM visits")
    inputs = {"visits": visits}
    query = SqlFunction(NAMES.name, file, "names.sql", inputs)
    expected = {name: [(visits.table, column)] for name, column in said.items()}
    assert said_of(NAMES, query, inputs) == expected
