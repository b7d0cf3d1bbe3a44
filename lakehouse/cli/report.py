"""What became of an ingest, in lines for people: pure functions of its result."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakehouse.cli.output import count

if TYPE_CHECKING:
    from lakehouse.ingestion.catch_up import IngestResult
    from lakehouse.resources.run_result import AssetResult


def summary(result: "IngestResult") -> list[str]:
    """Say which files were landed, what each table got of them, and where refused rows are."""
    return [
        _delivery(result),
        *(f"  {key} is still being written; the next ingest takes it" for key in result.unsettled),
        *(f"  {warning}" for warning in _warnings(result)),
        *(_table(asset) for asset in _done(result)),
        *_quarantined(result),
    ]


def complaints(result: "IngestResult") -> list[str]:
    """Say what failed: one line for each rejected file, and one for each table that was not published."""
    return [
        *(f"{file.file} was rejected: {file.reason} It is kept as {file.kept_as}." for file in result.rejected),
        *(result.run.messages if result.run else ()),
    ]


def _delivery(result: "IngestResult") -> str:
    if not result.files:
        return f"Feed {result.feed.name}: no new file in {result.feed.inbox}"
    files = f"{count(len(result.files), 'file')} ({', '.join(result.files)})"
    return f"Feed {result.feed.name}: {files}, nr_rows {result.rows}"


def _done(result: "IngestResult") -> "Iterator[AssetResult]":
    for asset in result.run.assets if result.run else ():
        if asset.status in ("published", "unchanged"):
            yield asset


def _warnings(result: "IngestResult") -> list[str]:
    return [warning for asset in _done(result) for warning in asset.metadata.get("warnings", ())]


def _table(asset: "AssetResult") -> str:
    found = asset.metadata
    total = count(found.get("dagster/row_count", 0), "row")
    if asset.status == "unchanged":
        return f"{asset.table}: unchanged, {total}"
    words = {"iceberg/inserted_rows": "inserted", "iceberg/updated_rows": "updated"}
    shown = words if words.keys() <= found.keys() else {"iceberg/added_rows": "added"}
    changes = ", ".join(f"{found.get(key, 0):,} {word}" for key, word in shown.items())
    return f"{asset.table}: {changes}, {total} in all"


def _quarantined(result: "IngestResult") -> Iterator[str]:
    for table, rows in result.quarantined.items():
        verb = "was" if rows == 1 else "were"
        yield (
            f"{table}: {count(rows, 'row')} {verb} refused and quarantined, with reasons; "
            f'look at them with: lakehouse sql "TABLE {table}_quarantine"'
        )
