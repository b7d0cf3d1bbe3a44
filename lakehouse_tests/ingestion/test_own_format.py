"""A format whose reader is defined in one file, this one, is staged as those that are shipped."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.byte_source import Readable, refuse_damaged
from lakehouse.ingestion.readers.csv_header import plan_header
from lakehouse.ingestion.readers.formats import READERS
from lakehouse.ingestion.rewrite_file import Rewriting, look_into
from lakehouse.ingestion.rewritten_files import RewrittenFiles
from lakehouse.ingestion.staged_rows import LocalRows
from lakehouse.ingestion.staging import StagedFile, Staging
from lakehouse.ingestion.suppressed_rows import SuppressedRows
from lakehouse.storage.object_store import LocalObjectStore
from lakehouse.tables import feed as feeds
from lakehouse.tables.feed import FORMATS, Feed, uncompressed

pytestmark = pytest.mark.unit
Stage = Callable[[str, bytes], StagedFile]


class JsonLinesReader:
    """A JSON object of texts in each line."""

    def __init__(self, feed: Feed, content: Readable, *, use_threads: bool) -> None:
        lines = refuse_damaged(content.read).splitlines()
        self._rows = [json.loads(line) for line in lines]
        self.header = plan_header(feed, list(self._rows[0]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        texts = {name: [row[name] for row in self._rows] for name in self.header.columns}
        yield pa.RecordBatch.from_pydict(texts)


def test_each_format_has_a_reader() -> None:
    assert {uncompressed(name) for name in FORMATS} == set(READERS)


@pytest.fixture
def stage_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setitem(cast(dict[str, type], READERS), "lines", JsonLinesReader)
    monkeypatch.setattr(feeds, "FORMATS", (*FORMATS, "lines", "lines.gz"))
    feed = Feed("people", ["id", "name"], "bronze.people", formats=["lines", "lines.gz"])
    store = LocalObjectStore(tmp_path)

    def stage_file(name: str, content: bytes) -> StagedFile:
        path = tmp_path / feed.inbox / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        stored = store.stat(f"{feed.inbox}{name}")
        assert stored
        staging = tmp_path / "staging"
        (staging / "rows").mkdir(parents=True)
        gone = SuppressedRows(feed)
        ledger = RewrittenFiles(store, feed)
        rewriting = Rewriting(store, feed, ledger, staging, look_into(feed, gone))
        at = datetime.now(UTC)
        rows = LocalRows(staging / "rows")
        staged = Staging(rewriting, staging, rows, at, gone).stage(stored, 1, lambda _: None)
        assert staged
        return staged

    return stage_file


@pytest.mark.parametrize("name", ["people.lines", "People.LINES.GZ"])
def test_its_rows_are_staged(stage_file: Stage, tmp_path: Path, name: str) -> None:
    content = b'{"name": "Ada", "id": "1"}\n{"name": "Alan", "id": "2"}\n'
    is_compressed = name.endswith("GZ")
    staged = stage_file(name, gzip.compress(content) if is_compressed else content)
    table = parquet.read_table(tmp_path / "staging" / "rows" / staged.name, partitioning=None)
    rows = table.select(["id", "name", "_source_row"]).to_pylist()
    assert staged.rows == 2
    assert rows == [
        {"id": "1", "name": "Ada", "_source_row": 1},
        {"id": "2", "name": "Alan", "_source_row": 2},
    ]


def test_a_column_that_is_missing_is_refused(stage_file: Stage) -> None:
    with pytest.raises(FileRejected, match="name"):
        stage_file("people.lines", b'{"id": "1"}\n')
