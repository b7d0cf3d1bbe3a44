"""What is used of PyIceberg that is not public, and faults of its that are mended where they are.

Its compiled decoder reads doubles in single precision. They stand in manifests as the values of
partitions: 1.1 came out as 1.100000023841858, so that a read of that partition held no row.

Its models are written by pydantic, which takes a Ctrl-C that comes within one of their functions
for an error of that function: who asked to stop was told of a failure, and work went on.

It commits the updates of its own operations alone, writes no manifests of delete files, and gives
no other the positions that one deletes.

`test_pyiceberg_internals.py` fails where another version than `LOOKED_AT` is installed. Then look
whether its decoder reads doubles whole by now and pydantic lets an interrupt through, whether it
has public calls for the others, and whether these still do the same.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.avro.reader import DoubleReader
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestWriter
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

LOOKED_AT = "0.12.0"
_DOUBLE = struct.Struct("<d")
_INTERRUPT = re.compile(r"Error calling function `\w+`: \w*Interrupt\w*\b")


def mend() -> None:
    """Mend PyIceberg's faults, in this process from here on."""
    read_doubles_whole()
    let_interrupts_through()


def read_doubles_whole() -> None:
    """Let PyIceberg read doubles in double precision, in this process from here on."""
    from pyiceberg.avro.reader import DoubleReader

    DoubleReader.read = _read_double  # type: ignore[method-assign, assignment]  # the mend


def _read_double(_: "DoubleReader", decoder: "BinaryDecoder") -> float:
    value: float = _DOUBLE.unpack(decoder.read(_DOUBLE.size))[0]
    return value


def let_interrupts_through() -> None:
    """Let an interrupt that comes while a model is written be one, in this process from here
    on.
    """
    from pyiceberg.typedef import IcebergBaseModel

    for name in ("model_dump", "model_dump_json"):
        written = getattr(IcebergBaseModel, name)
        if not hasattr(written, "__wrapped__"):
            setattr(IcebergBaseModel, name, _with_interrupts(written))


def _with_interrupts(written: Callable[..., Any]) -> Callable[..., Any]:
    from pydantic_core import PydanticSerializationError

    @wraps(written)
    def write(*arguments: Any, **options: Any) -> Any:
        try:
            return written(*arguments, **options)
        except PydanticSerializationError as error:
            if _INTERRUPT.search(str(error)):
                raise KeyboardInterrupt from error
            raise

    return write


WRITABLE_FORMATS = (1, 2)
"""The format versions whose metadata PyIceberg writes."""


def commit_updates(
    table: "Table",
    updates: "Sequence[TableUpdate]",
    requirements: "Sequence[TableRequirement]" = (),
) -> None:
    """Commit updates of a table's metadata in one, and move the table to what was committed.

    :raises CommitFailedException: of PyIceberg, where another commit came first.
    """
    table._do_commit(updates=tuple(updates), requirements=tuple(requirements))


def delete_manifest_writer(*arguments: Any) -> "ManifestWriter":
    """Return a writer of manifests of delete files.

    :param arguments: those of PyIceberg's writer of manifests of format 2.
    """
    from pyiceberg.manifest import ManifestContent, ManifestWriterV2

    class DeleteManifestWriter(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    return DeleteManifestWriter(*arguments)


def read_deletes(io: "FileIO", delete_file: "DataFile") -> "Mapping[str, pa.ChunkedArray[Any]]":
    """Return the positions that a file of position deletes names, by the path of their data
    file.
    """
    from pyiceberg.io.pyarrow import _read_deletes

    return _read_deletes(io, delete_file)
