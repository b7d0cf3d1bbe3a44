"""Iceberg's rewrite procedures as functions, each with one statement."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.quoting import dotted, identifier, literal


@dataclass(frozen=True)
class Layout:
    """The layout of rewritten files."""

    target_bytes: int
    sort_by: tuple[str, ...] = ()
    z_order: bool = False


@dataclass(frozen=True)
class Rewritten:
    """The reported result of a rewrite; `failed_files` could not be rewritten."""

    files: int
    size_bytes: int
    failed_files: int


def rewrite_data_files(
    engine: Engine,
    table: str,
    layout: Layout,
    predicate: str,
    *,
    most_files: int | None,
    has_deletes: bool,
    rewrites_all: bool,
) -> Rewritten:
    """Rewrite data files that are small, large or have deleted rows, in the current partition
    spec.

    :param predicate: a row predicate that selects files; empty for all.
    :param most_files: maximum number of files to rewrite.
    :param has_deletes: whether the table has delete files, which requires more commits.
    :param rewrites_all: whether to rewrite files of the target size too, for an old spec.
    """
    options = {
        "target-file-size-bytes": str(layout.target_bytes),
        "min-input-files": "2",
    }
    if has_deletes:
        options |= {
            "delete-file-threshold": "1",
            "remove-dangling-deletes": "true",
            # With their original sequence number, new files would keep old delete files alive
            # that delete nothing.
            "use-starting-sequence-number": "false",
        }
    if rewrites_all:
        options["rewrite-all"] = "true"
    if most_files is not None:
        options["max-files-to-rewrite"] = str(most_files)
    arguments = _arguments(engine, table, options, predicate)
    if layout.sort_by:
        columns = ", ".join(dotted(column) for column in layout.sort_by)
        order = f"zorder({columns})" if layout.z_order else columns
        arguments += f", strategy => 'sort', sort_order => {literal(order)}"
    statement = f"CALL {identifier(engine.catalog.name)}.system.rewrite_data_files({arguments})"
    return _rewritten(engine, statement)


def rewrite_deleted_from(engine: Engine, table: str) -> Rewritten:
    """Rewrite only the data files with deleted rows, of any size."""
    options = {
        "delete-file-threshold": "1",
        "remove-dangling-deletes": "true",
        "use-starting-sequence-number": "false",
        "min-file-size-bytes": "0",
        "max-file-size-bytes": str(2**63 - 1),
        "min-input-files": str(2**31 - 1),
    }
    procedure = f"{identifier(engine.catalog.name)}.system.rewrite_data_files"
    return _rewritten(engine, f"CALL {procedure}({_arguments(engine, table, options, '')})")


def rewrite_manifests_of_spec(engine: Engine, table: str, spec_id: int) -> None:
    """Rewrite the manifests of one partition spec, which removes their entries of deleted
    files; a single manifest is not rewritten.
    """
    name = literal(f"{engine.catalog.name}.{table}")
    engine.sql(
        f"CALL {identifier(engine.catalog.name)}.system.rewrite_manifests(table => {name},"
        f" use_caching => false, spec_id => {spec_id})"
    ).collect()


def _rewritten(engine: Engine, statement: str) -> Rewritten:
    row = engine.sql(statement).collect()[0]
    return Rewritten(
        files=row["rewritten_data_files_count"],
        size_bytes=row["rewritten_bytes_count"],
        failed_files=row["failed_data_files_count"],
    )


def rewrite_position_deletes(engine: Engine, table: str, predicate: str) -> None:
    """Rewrite position delete files, without positions in removed data files."""
    arguments = _arguments(engine, table, {"rewrite-all": "true"}, predicate)
    procedure = f"{identifier(engine.catalog.name)}.system.rewrite_position_delete_files"
    engine.sql(f"CALL {procedure}({arguments})").collect()


def _arguments(engine: Engine, table: str, options: Mapping[str, str], predicate: str) -> str:
    pairs = ", ".join(literal(text) for option in options.items() for text in option)
    name = literal(f"{engine.catalog.name}.{table}")
    where = f", where => {literal(predicate)}" if predicate else ""
    return f"table => {name}, options => map({pairs}){where}"
