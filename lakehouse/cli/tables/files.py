"""`lakehouse files`: lists the files of a table; no JVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import as_text, columns_named, plain_json
from lakehouse.cli.output.printing import count, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.manifests import TableFile
    from lakehouse.iceberg.metadata.referenced_files import NamedFile


@command("files")
@click.argument("name", metavar="TABLE")
@table_or_json
def files(state: State, name: str, form: str) -> None:
    """List the files of a table.

    Lists data and delete files of the current snapshot, and metadata files of all snapshots.
    """
    from lakehouse.iceberg.metadata.manifests import files as table_files
    from lakehouse.iceberg.metadata.referenced_files import metadata_files

    with state.progress("Reading the table's metadata"):
        table_name = state.existing_table(name)
        content = table_files(state.engine, table_name)
        metadata = metadata_files(state.engine, table_name)
    records = [
        *(
            _record(file.content, file, dict(file.partition), file.record_count)
            for file in content
        ),
        *(_record(file.kind, file, {}, None) for file in metadata),
    ]
    if form == "json":
        print_records(records)
    else:
        click.echo(_files_table(records))


def _record(
    kind: str, file: "TableFile | NamedFile", partition: Mapping[str, Any], rows: int | None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "partition": partition,
        "rows": rows,
        "bytes": file.size_bytes,
        "path": file.path,
    }


def _files_table(records: list[dict[str, Any]]) -> str:
    rows, total_bytes = [], 0
    for record in records:
        partition = []
        for name, value in record["partition"].items():
            partition.append(f"{name}={as_text(plain_json(value))}")
        number = "" if record["rows"] is None else record["rows"]
        shown_size = size_text(record["bytes"])
        rows.append([record["kind"], ", ".join(partition), number, shown_size, record["path"]])
        total_bytes += record["bytes"]
    names = ("kind", "partition", "rows", "size", "path")
    columns = columns_named(names, numbers=("rows", "size"))
    footer = f"{count(len(records), 'file')}, {size_text(total_bytes)} in total"
    return table(columns, rows, footer=footer)
