"""Names of internal columns are rejected where they are declared, not in a run."""

import ast
import re
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.tables.feed import INGEST_COLUMNS, Feed, FeedColumn, is_own_name
from lakehouse.tables.quarantine_columns import QUARANTINE_NAMES
from lakehouse.tables.table import SOURCE_COLUMNS, Column, IcebergTable, Merge
from lakehouse.tables.table_validation import INGEST_NAMES, reserved_for

pytestmark = pytest.mark.unit
RESERVED = {
    "_reasons": "quarantine tables",
    "_ROW_KEY": "quarantine tables",
    "_Quarantined_At": "quarantine tables",
    "__broken": "internal columns",
    "__RANK": "internal columns",
    "_deleted": "Iceberg's metadata columns",
    "_Source_Row": "the ingest, which writes it as _source_row",
}
each = pytest.mark.parametrize(("name", "owner"), RESERVED.items())


@each
@pytest.mark.parametrize("kind", [str, FeedColumn])
def test_of_a_feed_are_rejected(name: str, owner: str, kind: type) -> None:
    with pytest.raises(DeclarationError) as raised:
        Feed("a", ["id", kind(name)], "bronze.a")
    message = str(raised.value)
    assert f"feed a declares the column {name}" in message
    assert f"the name is reserved for {owner}. " in message
    assert f"FeedColumn({name.strip('_').lower()!r}, header={name!r})." in message


def test_the_lists_are_those_of_the_columns() -> None:
    table = IcebergTable(
        "silver.a", "", [Column("id", "int")], Merge(on="id"), rules=[not_null("id")]
    )
    assert table.quarantine is not None
    added = {*table.quarantine.column_names} - {"id", *SOURCE_COLUMNS}
    assert added == QUARANTINE_NAMES
    assert {column.name for column in INGEST_COLUMNS} == INGEST_NAMES
    assert not any(map(reserved_for, INGEST_NAMES))
    assert all(map(is_own_name, INGEST_NAMES))


def test_columns_that_the_code_adds_are_reserved() -> None:
    """Read the names after AS in the SQL of the modules that handle rows of tables."""
    folder = Path(lakehouse.__file__).parent
    sources = [*folder.glob("iceberg/write/*.py"), *folder.glob("quality/*.py")]
    added: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                added |= set(re.findall(r"\bAS (_\w+)", node.value))
    assert added
    assert {name for name in added if not is_own_name(name)} == set()
