"""What is mended of PyIceberg: looked at for the version that is installed, and still needed."""

import struct
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import model_serializer
from pydantic_core import PydanticSerializationError
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.reader import DoubleReader
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.types import DoubleType, NestedField

from lakehouse.iceberg.catalog import pyiceberg_internals
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.pyiceberg_internals import CHECKED_VERSION, patch_double_reader
from lakehouse.iceberg.metadata.manifests import read_files
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit


def test_the_version_that_is_installed_was_looked_at() -> None:
    assert version("pyiceberg") == CHECKED_VERSION, (
        f"PyIceberg {version('pyiceberg')} is installed, and {CHECKED_VERSION} was looked at: look"
        f" whether it needs {pyiceberg_internals.__name__} still."
    )


@pytest.mark.parametrize("value", [1.1, -2.3, 1e300, float("inf"), -0.0])
def test_a_double_is_read_whole(value: float) -> None:
    patch_double_reader()
    written = struct.pack("<d", value)
    assert DoubleReader().read(new_decoder(written)) == value


def test_the_compiled_decoder_still_needs_it() -> None:
    assert new_decoder(struct.pack("<d", 1.1)).read_double() != 1.1


def test_partitions_of_doubles_have_the_values_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever it is in this process by now: opening a catalog mends it.
    monkeypatch.setattr(DoubleReader, "read", lambda *_: 0.0)
    catalog = Catalog.of(Settings(home=tmp_path))
    catalog.client.create_namespace("t")
    by_rate = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "rate"))
    schema = Schema(NestedField(1, "rate", DoubleType(), required=False))
    catalog.client.create_table("t.rates", schema, partition_spec=by_rate)
    catalog.load("t.rates").append(pa.table({"rate": [1.1, 1e300]}))
    partitions = [dict(file.partition) for file in read_files(catalog.load("t.rates"))]
    assert partitions == [{"rate": 1.1}, {"rate": 1e300}]


class Stopped(BaseException):
    """What Dagster raises where a run is to end is no `Exception` either."""


class StepInterrupted(Stopped):
    pass


class Model(IcebergBaseModel):
    comes: type[BaseException]

    @model_serializer
    def serialize_model(self) -> None:
        raise self.comes


class Nested(IcebergBaseModel):
    model: Model


@pytest.mark.parametrize("write", ["model_dump", "model_dump_json"])
@pytest.mark.parametrize(
    ("comes", "expected"),
    [
        (KeyboardInterrupt, KeyboardInterrupt),
        (StepInterrupted, KeyboardInterrupt),
        (RecursionError, PydanticSerializationError),
    ],
)
def test_an_interrupt_while_a_model_is_written_is_one(
    tmp_path: Path, write: str, comes: type[BaseException], expected: type[BaseException]
) -> None:
    assert Catalog.of(Settings(home=tmp_path)).client
    with pytest.raises(expected):
        getattr(Nested(model=Model(comes=comes)), write)()


def test_pydantic_still_takes_an_interrupt_for_an_error() -> None:
    written = IcebergBaseModel.model_dump_json
    with pytest.raises(PydanticSerializationError):
        getattr(written, "__wrapped__", written)(Model(comes=KeyboardInterrupt))
