"""Rows of people deleted by Spark from main, a branch or a tag."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import drop_branch
from lakehouse.iceberg.commit.retry import retry_on_refs
from lakehouse.iceberg.commit.table_property import set_property
from lakehouse.iceberg.erasure.person_columns import PersonColumns
from lakehouse.iceberg.erasure.spark_rows import delete_by_spark
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, read_history
from lakehouse.tables.quoting import identifier
from lakehouse.tables.row_level import COPY_ON_WRITE, DELETE_PROPERTY

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.refs import SnapshotRef

_MINUTE_MS = 60_000
_COPY = "erasure_of_tag"
"""A branch that a tag's rows are deleted on."""


def delete_from_ref(
    engine: Engine,
    loaded: "Table",
    columns: PersonColumns,
    ref: str,
    properties: Mapping[str, str],
) -> None:
    """Delete the rows of some people from a branch or tag; a tag then points at a snapshot of
    its own.

    From main they go as the table's properties say. The files of others are written again,
    since nothing compacts a branch.
    """
    name = ".".join(loaded.name())
    if ref == MAIN:
        delete_by_spark(engine, name, columns, None, properties)
        return
    with _whole_files(engine, loaded):
        if loaded.metadata.refs[ref].snapshot_ref_type == "branch":
            delete_by_spark(engine, name, columns, ref, properties)
        else:
            _delete_from_tag(engine, name, columns, loaded.metadata.refs, ref, properties)


def _delete_from_tag(
    engine: Engine,
    name: str,
    columns: PersonColumns,
    refs: "Mapping[str, SnapshotRef]",
    tag: str,
    properties: Mapping[str, str],
) -> None:
    table = f"ALTER TABLE {engine.catalog.sql_name(name)}"
    copied = (
        f"{table} CREATE OR REPLACE BRANCH {identifier(_COPY)} AS OF VERSION"
        f" {refs[tag].snapshot_id}"
    )
    retry_on_refs(lambda: engine.sql(copied))
    delete_by_spark(engine, name, columns, _COPY, properties)
    head = read_history(engine, name).refs[_COPY]
    moved = f"{table} REPLACE TAG {identifier(tag)} AS OF VERSION {head}"
    if refs[tag].max_ref_age_ms is not None:
        moved += f" RETAIN {refs[tag].max_ref_age_ms // _MINUTE_MS} MINUTES"
    retry_on_refs(lambda: engine.sql(moved))
    drop_branch(engine, name, _COPY)


@contextmanager
def _whole_files(engine: Engine, loaded: "Table") -> Iterator[None]:
    """Let the delete inside write whole files again.

    Iceberg knows how by the table's properties alone. After a failure it stays, until the next
    write brings the table to its declaration.
    """
    name = ".".join(loaded.name())
    current = loaded.properties.get(DELETE_PROPERTY, COPY_ON_WRITE)
    if current == COPY_ON_WRITE:
        yield
        return
    set_property(engine, name, DELETE_PROPERTY, COPY_ON_WRITE)
    yield
    set_property(engine, name, DELETE_PROPERTY, current)
