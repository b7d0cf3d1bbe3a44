"""Copy the files of a table; complete files of an earlier attempt are skipped."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.copy.moved_deletes import MovedDeletes, moved_deletes
from lakehouse.iceberg.copy.moved_paths import MovedPaths
from lakehouse.iceberg.copy.source_files import SourceFile, missing, read_bytes

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

_AT_ONCE = 8
_CHUNK_BYTES = 8 << 20
Progress = Callable[[int, int], None]
"""Called with the number of copied files and their bytes."""


@dataclass(frozen=True)
class FileCopier:
    """Copies the files of one table."""

    source: "Table"
    io: "FileIO"
    """FileIO of the target."""
    paths: MovedPaths
    _is_cancelled: Event = field(default_factory=Event, init=False, repr=False)

    def copy(self, files: Iterable[SourceFile], progress: Progress) -> dict[str, MovedDeletes]:
        """Copy files concurrently; return the rewritten delete files, by path.

        :raises TableDamaged: if a file is missing.
        """
        moved: dict[str, MovedDeletes] = {}
        done_bytes = 0
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copy")
        futures = {pool.submit(self._copy_one, file): file for file in files}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                file, deletes = futures[future], future.result()
                if deletes is not None:
                    moved[file.path] = deletes
                done_bytes += file.size_bytes
                progress(done, done_bytes)
        finally:
            # Stop copies of large files after Ctrl-C or an error.
            self._is_cancelled.set()
            pool.shutdown(cancel_futures=True)
        return moved

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""
        with self.io.new_output(path).create(overwrite=True) as stream:
            stream.write(content)

    def _copy_one(self, file: SourceFile) -> MovedDeletes | None:
        new_path = self.paths.of(file.path)
        if file.is_rewritten:
            content = read_bytes(self.source, file.path)
            moved = moved_deletes(file.path, file.format, content, self.paths.of)
            self.write(new_path, moved.content)
            return moved
        if not self._is_there(new_path, file.size_bytes):
            self._stream(file, new_path)
        return None

    def _is_there(self, path: str, size_bytes: int) -> bool:
        file = self.io.new_input(path)
        return file.exists() and len(file) == size_bytes

    def _stream(self, file: SourceFile, new_path: str) -> None:
        written_bytes = 0
        with self.io.new_output(new_path).create(overwrite=True) as stream:
            for chunk in self._chunks(file.path):
                written_bytes += len(chunk)
                stream.write(chunk)
        if written_bytes != file.size_bytes:
            raise LakehouseError(
                f"{file.path} has {written_bytes} bytes; expected {file.size_bytes}, as in"
                " the table's metadata.",
                next_step="`lakehouse doctor` checks the files of all tables.",
            )

    def _chunks(self, path: str) -> Iterator[bytes]:
        try:
            opened = self.source.io.new_input(path).open(seekable=False)
        except FileNotFoundError as error:
            raise missing(self.source, path) from error
        with opened as stream:
            while not self._is_cancelled.is_set() and (chunk := stream.read(_CHUNK_BYTES)):
                yield chunk
