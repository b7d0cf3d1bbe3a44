"""Tables that somebody else makes in the same catalog, with a type that Spark alone reads."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from lakehouse.iceberg.catalog.catalog import Catalog

EVENTS = "strangers.events"


def make_events(catalog: Catalog, kind: str = "variant", name: str = EVENTS) -> Path:
    """Make a table of two rows without a JVM, and say in its metadata that its event is of a type;
    return the file that says so.
    """
    schema = Schema(
        NestedField(1, "customer_id", LongType(), required=False),
        NestedField(2, "event", StringType(), required=False),
    )
    catalog.client.create_namespace_if_not_exists(name.partition(".")[0])
    table = catalog.client.create_table(name, schema)
    rows = pa.table({"customer_id": [1, 2], "event": ["opened", "closed"]})
    table.append(rows.cast(table.schema().as_arrow()))
    file = Path(urlsplit(table.metadata_location).path)
    metadata = json.loads(file.read_text())
    for of_version in metadata["schemas"]:
        of_version["fields"][1]["type"] = kind
    file.write_text(json.dumps(metadata))
    return file
