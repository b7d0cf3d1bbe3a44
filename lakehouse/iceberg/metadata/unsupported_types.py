"""Open a table with column types that only Spark supports, for its files and locations."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog
    from pyiceberg.table import Table

_PLACEHOLDER_TYPE = "binary"
_PARTS = ("type", "element", "key", "value")
"""Keys of types in an Iceberg schema, for fields, lists and maps."""


def open_for_files(client: "PyIcebergCatalog", table: str, metadata_location: str) -> "Table":
    """Open a table with `binary` in place of unsupported types; row values are incorrect."""
    from pyiceberg.io import load_file_io
    from pyiceberg.serializers import Compressor
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadataUtil

    io = load_file_io(dict(client.properties), metadata_location)
    with io.new_input(metadata_location).open() as file:
        packed = Compressor.get_compressor(metadata_location).stream_decompressor(file)
        metadata = json.loads(packed.read())
    known = TableMetadataUtil.parse_obj(with_known_types(metadata))
    return Table(tuple(table.split(".")), known, metadata_location, io, client)


def with_known_types(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return table metadata with `binary` in place of unsupported types."""
    known = dict(metadata)
    for name in ("schema", "schemas"):
        if name in known:
            known[name] = _known(known[name])
    return known


def _known(part: Any) -> Any:
    if isinstance(part, list):
        return [_known(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    known = {name: _known(item) for name, item in part.items()}
    for name in _PARTS:
        if isinstance(known.get(name), str) and not _is_known(known[name]):
            known[name] = _PLACEHOLDER_TYPE
    return known


def _is_known(name: str) -> bool:
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.types import IcebergType

    # The type names of structs, lists and maps.
    if name in ("struct", "list", "map"):
        return True
    try:
        IcebergType.model_validate(name)
    except (ValueError, ValidationError):
        return False
    return True
