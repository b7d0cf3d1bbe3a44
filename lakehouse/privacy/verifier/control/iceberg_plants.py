"""Files of Iceberg in which a made-up person is planted, written by PyIceberg."""

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse.privacy.verifier.control.planted_person import PERSONAL, SUBJECT, PlantedPerson

if TYPE_CHECKING:
    from pyiceberg.table import Table

_NAMESPACE = "control"


def plant_manifest(home: Path, person: PlantedPerson) -> Path:
    """Plant the beginning of a value, which bounds keep."""
    table = _table(home, "bounds")
    table.append(_rows(person))
    return _newest(table, "*-m0.avro")


def plant_manifest_list(home: Path, person: PlantedPerson) -> Path:
    """Plant the bounds of a partition, which a list of manifests keeps."""
    from pyiceberg.transforms import IdentityTransform

    table = _table(home, "partitions")
    with table.update_spec() as update:
        update.add_field(PERSONAL, IdentityTransform(), PERSONAL)
    table.append(_rows(person))
    return _newest(table, "snap-*.avro")


def plant_metadata(home: Path, person: PlantedPerson) -> Path:
    """Plant a property of a snapshot."""
    table = _table(home, "summaries")
    table.append(_rows(person), snapshot_properties={"note": person.email})
    return _newest(table, "*.metadata.json")


def plant_statistics(home: Path, person: PlantedPerson) -> Path:
    """Plant a blob of a Puffin file, compressed."""
    blob = pa.compress(person.email.encode() * 8, "zstd", asbytes=True)
    magic = b"PFA1"
    described = {
        "type": "control",
        "fields": [1],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": len(magic),
        "length": len(blob),
        "compression-codec": "zstd",
    }
    footer = json.dumps({"blobs": [described]}).encode()
    file = home / "warehouse" / _NAMESPACE / "statistics" / "metadata" / "control.stats"
    file.parent.mkdir(parents=True)
    tail = struct.pack("<ii", len(footer), 0)
    file.write_bytes(magic + blob + magic + footer + tail + magic)
    return file


def _rows(person: PlantedPerson) -> pa.Table:
    return pa.table({SUBJECT: [person.small_id], PERSONAL: [person.email]})


def _table(home: Path, name: str) -> "Table":
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("control", uri="sqlite:///:memory:", warehouse=str(home / "warehouse"))
    catalog.create_namespace(_NAMESPACE)
    fields: dict[str, pa.DataType] = {SUBJECT: pa.int64(), PERSONAL: pa.string()}
    location = str(home / "warehouse" / _NAMESPACE / name)
    return catalog.create_table(f"{_NAMESPACE}.{name}", pa.schema(fields), location)


def _newest(table: "Table", pattern: str) -> Path:
    folder = Path(table.location().removeprefix("file://"), "metadata")
    return max(folder.glob(pattern), key=lambda file: file.stat().st_mtime_ns)
