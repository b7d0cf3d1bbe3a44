"""Rows of people leave main, a branch or a tag of a table that Spark alone changes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import drop_branch, is_refused
from lakehouse.iceberg.commit.retry import retry_on_refs
from lakehouse.iceberg.erasure.borrowed_properties import borrowed_properties
from lakehouse.iceberg.erasure.person_columns import PersonColumns
from lakehouse.iceberg.erasure.spark_rows import delete_by_spark
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, read_history
from lakehouse.tables.quoting import identifier
from lakehouse.tables.row_level import COPY_ON_WRITE, DELETE_PROPERTY

if TYPE_CHECKING:
    from pyiceberg.table import Table


def delete_from_ref(
    engine: Engine,
    loaded: "Table",
    columns: PersonColumns,
    ref: str,
    properties: Mapping[str, str],
) -> None:
    """Take the rows of some people from main or a branch; drop a tag or a refused candidate that
    has any, of which no procedure could clean the manifests.

    From main they go as the table's properties say. The files of a branch are written again,
    since nothing compacts one.
    """
    name = ".".join(loaded.name())
    if ref == MAIN:
        delete_by_spark(engine, loaded, columns, ref, properties)
    elif _is_tag(loaded, ref):
        _drop_tag(engine, name, ref)
    elif is_refused(ref):
        drop_branch(engine, name, ref)
    else:
        with borrowed_properties(engine, name, {DELETE_PROPERTY: COPY_ON_WRITE}):
            delete_by_spark(engine, loaded, columns, ref, properties)


def goes_whole(loaded: "Table", ref: str) -> bool:
    """Whether `delete_from_ref` drops a branch or tag that has rows of people."""
    return _is_tag(loaded, ref) or is_refused(ref)


def _is_tag(loaded: "Table", ref: str) -> bool:
    return loaded.metadata.refs[ref].snapshot_ref_type == "tag"


def _drop_tag(engine: Engine, table: str, tag: str) -> None:
    name = engine.catalog.sql_name(table)
    statement = f"ALTER TABLE {name} DROP TAG IF EXISTS {identifier(tag)}"
    retry_on_refs(
        lambda: engine.sql(statement),
        done=lambda: tag not in read_history(engine, table).refs,
    )
