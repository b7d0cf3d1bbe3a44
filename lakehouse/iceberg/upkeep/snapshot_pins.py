"""References to old snapshots of a table, each with its owner; no JVM."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import is_of_write
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, history_of, read_history
from lakehouse.iceberg.metadata.measured_health import SnapshotPin

if TYPE_CHECKING:
    from pyiceberg.table import Table


def find_pins(engine: Engine, table: str, readers: Iterable[str]) -> tuple[SnapshotPin, ...]:
    """Return the tags, users' branches, and watermarks of downstream tables, oldest first.

    A watermark is the snapshot that a downstream table last read. Its next read needs all later
    snapshots. A tag or branch only needs its own snapshot.

    :param readers: declared downstream tables; those that do not exist yet, or never read this
        table, are ignored.
    """
    loaded = engine.catalog.load(table)
    history = history_of(table, loaded)
    pins = [*_refs(loaded, history), *_watermarks(engine, history, readers)]
    return tuple(sorted(pins, key=lambda pin: (pin.committed_at, pin.owner)))


def _refs(table: "Table", history: History) -> Iterator[SnapshotPin]:
    for name, ref in table.metadata.refs.items():
        if name == MAIN or is_of_write(name):
            continue
        head = history.snapshots[ref.snapshot_id]
        owner = f"{ref.snapshot_ref_type} {name}"
        yield SnapshotPin(owner, head.snapshot_id, head.committed_at)


def _watermarks(
    engine: Engine, history: History, readers: Iterable[str]
) -> Iterator[SnapshotPin]:
    for reader in readers:
        if not engine.catalog.has(reader):
            continue
        watermark = read_history(engine, reader).watermark(history.table)
        # An expired watermark cannot be retained.
        if watermark is not None and watermark in history.snapshots:
            at = history.snapshots[watermark].committed_at
            yield SnapshotPin(f"watermark of {reader}", watermark, at, needs_later=True)
