"""Private API of PyIceberg that the lakehouse uses, and patches for its bugs.

Its compiled decoder reads doubles in single precision, so that a read of the partition 1.1
returned no rows. pydantic reports Ctrl-C during serialization as an error of the model. There
is no public API for own updates, manifests of delete files, or positions of deletes.

`test_pyiceberg_internals.py` fails with another version than `CHECKED_VERSION`: then check
whether the patches are needed and the private API is unchanged.
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

CHECKED_VERSION = "0.12.0"
_DOUBLE = struct.Struct("<d")
_INTERRUPT = re.compile(r"Error calling function `\w+`: \w*Interrupt\w*\b")


def mend() -> None:
    """Patch PyIceberg's bugs in this process."""
    patch_double_reader()
    let_interrupts_through()


def patch_double_reader() -> None:
    """Let PyIceberg read doubles in double precision."""
    from pyiceberg.avro.reader import DoubleReader

    DoubleReader.read = _read_double  # type: ignore[method-assign, assignment]  # the mend


def _read_double(_: "DoubleReader", decoder: "BinaryDecoder") -> float:
    value: float = _DOUBLE.unpack(decoder.read(_DOUBLE.size))[0]
    return value


def let_interrupts_through() -> None:
    """Raise KeyboardInterrupt if an interrupt occurs while a model is serialized."""
    from pyiceberg.typedef import IcebergBaseModel

    for name in ("model_dump", "model_dump_json"):
        serialize = getattr(IcebergBaseModel, name)
        if not hasattr(serialize, "__wrapped__"):
            setattr(IcebergBaseModel, name, _with_interrupts(serialize))


def _with_interrupts(serialize: Callable[..., Any]) -> Callable[..., Any]:
    from pydantic_core import PydanticSerializationError

    @wraps(serialize)
    def write(*arguments: Any, **options: Any) -> Any:
        try:
            return serialize(*arguments, **options)
        except PydanticSerializationError as error:
            if _INTERRUPT.search(str(error)):
                raise KeyboardInterrupt from error
            raise

    return write


WRITABLE_FORMATS = (1, 2)
"""Format versions whose metadata PyIceberg can write."""


def commit_updates(
    table: "Table",
    updates: "Sequence[TableUpdate]",
    requirements: "Sequence[TableRequirement]" = (),
) -> None:
    """Commit metadata updates in one commit, and refresh the table.

    :raises CommitFailedException: of PyIceberg, after a conflicting commit.
    """
    table._do_commit(updates=tuple(updates), requirements=tuple(requirements))


def delete_manifest_writer(*arguments: Any) -> "ManifestWriter":
    """Return a writer for manifests of delete files.

    :param arguments: those of PyIceberg's writer of format 2 manifests.
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
    """Return the positions in a position delete file, by the path of the data file."""
    from pyiceberg.io.pyarrow import _read_deletes

    return _read_deletes(io, delete_file)
