"""Set or remove one table property, concurrently with other changes of the table."""

from lakehouse.iceberg.commit.retry import retry_on_refs
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.quoting import literal


def set_property(engine: Engine, table: str, name: str, value: str) -> None:
    """Set a property of a table; retried after conflicts."""
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} SET TBLPROPERTIES"
        f" ({literal(name)} = {literal(value)})"
    )
    retry_on_refs(lambda: engine.sql(statement))


def unset_property(engine: Engine, table: str, name: str) -> None:
    """Remove a property of a table, if it exists."""
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} UNSET TBLPROPERTIES IF EXISTS"
        f" ({literal(name)})"
    )
    retry_on_refs(lambda: engine.sql(statement))
