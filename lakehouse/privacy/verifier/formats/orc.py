"""ORC: data by stripe and column."""

from typing import BinaryIO

from pyarrow import orc

from lakehouse.privacy.verifier.arrow_columns import search_column
from lakehouse.privacy.verifier.search_state import FilePart

_FIELD_ID = b"iceberg.id"


def read_orc(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search what an ORC file says.

    Its statistics are of its own rows, and are not read apart.

    :raises pyarrow.ArrowException: where it is none, or damaged.
    """
    reader = orc.ORCFile(file)
    first_row = 1
    for stripe in range(reader.nstripes):
        within = part.within(f"stripe {stripe}")
        batch = reader.read_stripe(stripe)
        for index, field in enumerate(batch.schema):
            name = part.column_name(field.name, (field.metadata or {}).get(_FIELD_ID))
            search_column(within, [name], batch.column(index), first_row)
        first_row += batch.num_rows
