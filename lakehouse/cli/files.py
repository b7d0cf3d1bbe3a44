"""`lakehouse files`: the files of a table, without a JVM."""

from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Column, as_text, plain_json
from lakehouse.cli.output.printing import count, size, table
from lakehouse.cli.output.records import print_values, table_or_json

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.manifests import TableFile
    from lakehouse.iceberg.metadata.metadata_files import MetadataFile


@command("files")
@click.argument("name", metavar="TABLE")
@table_or_json
def files(state: State, name: str, form: str) -> None:
    """List the files of a table.

    Data and delete files are those of the current snapshot, metadata files those of all
    snapshots that are kept.
    """
    from lakehouse.iceberg.metadata.manifests import files as table_files
    from lakehouse.iceberg.metadata.metadata_files import metadata_files

    with state.progress("Reading the table's metadata"):
        there = state.table_there(name)
        held, kept = table_files(state.engine, there), metadata_files(state.engine, there)
    records = [
        *(_file_record(file) for file in held),
        *(_metadata_record(file) for file in kept),
    ]
    if form == "json":
        print_values(records)
    else:
        click.echo(_files_table(records))


def _file_record(file: "TableFile") -> dict[str, Any]:
    kind = "data" if file.content == "data" else file.content
    return {
        "kind": kind,
        "partition": dict(file.partition),
        "rows": file.record_count,
        "bytes": file.size_bytes,
        "path": file.path,
    }


def _metadata_record(file: "MetadataFile") -> dict[str, Any]:
    return {
        "kind": file.kind,
        "partition": {},
        "rows": None,
        "bytes": file.size_bytes,
        "path": file.path,
    }


def _files_table(records: list[dict[str, Any]]) -> str:
    rows = [
        [
            record["kind"],
            ", ".join(
                f"{name}={as_text(plain_json(value))}"
                for name, value in record["partition"].items()
            ),
            "" if record["rows"] is None else record["rows"],
            size(record["bytes"]),
            record["path"],
        ]
        for record in records
    ]
    numbers = ("rows", "size")
    columns = [
        Column(name, is_number=name in numbers)
        for name in ("kind", "partition", "rows", "size", "path")
    ]
    total = (
        f"{count(len(records), 'file')}, {size(sum(record['bytes'] for record in records))} in"
        " total"
    )
    return table(columns, rows, footer=total)
