"""Time that passes when a test says so: all that a table's metadata dates becomes older.

No code under test has to be told another time, and Iceberg's own sees the same as ours.
"""

import json
from typing import Any
from uuid import uuid4

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse_tests.iceberg.upkeep.tables import NAME, local_path

_DAY_MS = 86_400_000
_DATED = ("timestamp-ms", "last-updated-ms")


def let_days_pass(engine: Engine, days: float, name: str = NAME) -> None:
    """Make the snapshots and logs of a table of the embedded catalog older."""

    def make_older(entry: dict[str, Any]) -> dict[str, Any]:
        for key in _DATED:
            if key in entry:
                entry[key] -= round(days * _DAY_MS)
        return entry

    now = engine.catalog.load(name).metadata_location
    metadata = json.loads(local_path(now).read_text("utf-8"), object_hook=make_older)
    folder, _, file = now.rpartition("/")
    # A file of another name, since Iceberg takes one for what it was when it was first read.
    older = f"{folder}/{file.partition('-')[0]}-{uuid4()}.metadata.json"
    local_path(older).write_text(json.dumps(metadata), "utf-8")
    engine.catalog.client.drop_table(name)
    engine.catalog.client.register_table(name, older)
