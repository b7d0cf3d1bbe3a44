"""Iceberg's procedures as functions, each with one statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.tables.quoting import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import Row

TARGET_PROPERTY = "commit.manifest.target-size-bytes"
DELETED_ROWS_OPTIONS: Mapping[str, str] = {
    "delete-file-threshold": "1",
    "remove-dangling-deletes": "true",
    # With their original sequence number, new files would keep old delete files alive that
    # delete nothing.
    "use-starting-sequence-number": "false",
}
"""Options of `rewrite_data_files` for files with deleted rows."""


@dataclass(frozen=True)
class Rewritten:
    """The reported result of a rewrite; `failed_files` could not be rewritten."""

    files: int
    size_bytes: int
    failed_files: int


def call_procedure(
    engine: Engine, procedure: str, table: str, **arguments: object
) -> "list[Row]":
    """Call a procedure of Iceberg for a table, and return its rows.

    :param arguments: values, or a mapping for `options`.
    """
    catalog = engine.catalog.name
    terms = [f"table => {literal(f'{catalog}.{table}')}"]
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            pairs = ", ".join(literal(text) for option in value.items() for text in option)
            terms.append(f"{name} => map({pairs})")
        else:
            terms.append(f"{name} => {literal(value)}")
    called = f"{identifier(catalog)}.system.{procedure}"
    return engine.sql(f"CALL {called}({', '.join(terms)})").collect()


def rewrite_data_files(
    engine: Engine, table: str, options: Mapping[str, str], sort_order: str = ""
) -> Rewritten:
    """Rewrite the data files that Iceberg selects by its options.

    :param sort_order: the columns to sort by, in Iceberg's syntax; empty to only merge files.
    """
    layout = {"strategy": "sort", "sort_order": sort_order} if sort_order else {}
    (row,) = call_procedure(engine, "rewrite_data_files", table, options=options, **layout)
    return Rewritten(
        files=row["rewritten_data_files_count"],
        size_bytes=row["rewritten_bytes_count"],
        failed_files=row["failed_data_files_count"],
    )


def rewrite_deleted_from(engine: Engine, table: str) -> Rewritten:
    """Rewrite only the data files with deleted rows, of any size."""
    any_size = {
        "min-file-size-bytes": "0",
        "max-file-size-bytes": str(2**63 - 1),
        "min-input-files": str(2**31 - 1),
    }
    return rewrite_data_files(engine, table, {**DELETED_ROWS_OPTIONS, **any_size})


def rewrite_manifests_of_spec(engine: Engine, table: str, spec_id: int) -> None:
    """Rewrite the manifests of a partition spec, unless it has a single one."""
    call_procedure(engine, "rewrite_manifests", table, use_caching=False, spec_id=spec_id)


def rewrite_position_deletes(engine: Engine, table: str) -> None:
    """Rewrite position delete files, without positions in removed data files."""
    options = {"rewrite-all": "true"}
    call_procedure(engine, "rewrite_position_delete_files", table, options=options)
