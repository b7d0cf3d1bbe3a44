"""Properties of a table that are other than they should be for a moment, since Iceberg knows by
them alone how to do a thing; given back also after a kill, by whoever works on the table next.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakehouse.iceberg.metadata.commit_properties import PREFIX
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.tables.quoting import literal

BORROWED = f"{PREFIX}borrowed-properties"
"""Table property: what others are to be given back, null where there was none."""


@contextmanager
def borrowed_properties(
    engine: Engine, table: str, properties: Mapping[str, str]
) -> Iterator[None]:
    """Let a table have some properties inside, and what it had after; needs its lock."""
    give_back(engine, table)
    known = engine.catalog.load(table).properties
    had = {name: known.get(name) for name in properties}
    _change(engine, table, {**properties, BORROWED: json.dumps(had)})
    try:
        yield
    finally:
        give_back(engine, table)


def give_back(engine: Engine, table: str) -> None:
    """Give a table the properties back that a process borrowed and did not give back."""
    borrowed = engine.catalog.load(table).properties.get(BORROWED)
    if borrowed is not None:
        had: dict[str, str | None] = json.loads(borrowed)
        _change(engine, table, {**had, BORROWED: None})


def _change(engine: Engine, table: str, properties: Mapping[str, str | None]) -> None:
    """Set properties of a table, and remove those that are None."""
    values = {name: value for name, value in properties.items() if value is not None}
    missing = sorted(properties.keys() - values.keys())
    loaded = engine.catalog.load(table)
    if loaded.format_version in WRITABLE_FORMATS:
        with loaded.transaction() as transaction:
            if values:
                transaction.set_properties(values)
            if missing:
                transaction.remove_properties(*missing)
        return
    name = engine.catalog.sql_name(table)
    if values:
        pairs = ", ".join(f"{literal(key)} = {literal(values[key])}" for key in values)
        engine.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})")
    if missing:
        # What marks that others were borrowed goes with them, or after them.
        names = ", ".join(map(literal, missing))
        engine.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ({names})")
