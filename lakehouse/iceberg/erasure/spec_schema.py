"""The schema by which manifests of a partition spec are written: one that has the columns that the
spec is made from, which the table may have dropped since.

By a schema without them PyIceberg knows no type of the values of partitions: it fails, or writes a
manifest that Iceberg does not read.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.errors import ErasureFailed

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


def schema_of_spec(
    table: "Table", spec: "PartitionSpec", manifests: "Iterable[ManifestFile]"
) -> "Schema":
    """Return a schema that has all columns of a partition spec: today's, else the newest that the
    table keeps, else one that a manifest was written by.

    :param manifests: manifests of the spec, which are opened where the table keeps no schema.
    :raises ErasureFailed: where there is none; names the table, the spec and the columns.
    """
    for schema in _schemas(table, manifests):
        if not _without_column(spec, schema):
            return schema
    fields = ", ".join(
        f"{field.name} (of the column with the id {field.source_id})"
        for field in _without_column(spec, table.schema())
    )
    name = ".".join(table.name())
    raise ErasureFailed(
        f"{name}: no manifest of its partition spec {spec.spec_id} can be written: the columns of"
        f" {fields} are dropped, and no schema that is kept has their types.",
        next_step="Let Spark write the files of that spec again, by `CALL"
        f" ….system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))`;"
        " drop branches and tags that still have them; then run the erasure again.",
    )


def _without_column(spec: "PartitionSpec", schema: "Schema") -> "list[PartitionField]":
    return [field for field in spec.fields if schema.find_column_name(field.source_id) is None]


def _schemas(table: "Table", manifests: "Iterable[ManifestFile]") -> "Iterator[Schema]":
    yield table.schema()
    for _, schema in sorted(table.schemas().items(), reverse=True):
        yield schema
    for manifest in manifests:
        yield _schema_of_manifest(table, manifest)


def _schema_of_manifest(table: "Table", manifest: "ManifestFile") -> "Schema":
    """Return the schema that stands in the header of a manifest, as the specification wants it."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.schema import Schema

    file: AvroFile[Any]
    with AvroFile(table.io.new_input(manifest.manifest_path)) as file:
        schema: Schema = Schema.model_validate_json(file.header.meta["schema"])
        return schema
