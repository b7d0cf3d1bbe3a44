"""A run dies between its publish and its quarantine removals: the next write does them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_events import BegunWrite, WriteListener
from lakehouse.iceberg.values.write_result import Published, Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
    WriteMode,
)
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery, snapshot_id

pytestmark = [pytest.mark.spark, pytest.mark.long]
QUARANTINE = "silver.numbers_quarantine"
WITH_SOURCE = IcebergTable(
    name="silver.numbers",
    comment="Numbers with their source.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Append(),
    rules=[castable("id", "bigint")],
)
SOURCE = replace(DELIVERED, partitioning=["name"])
NEW_ROWS = {"delivered": incremental(DELIVERED.name)}
EVERYTHING = Run("two", reads_everything=True)
BY_NAME = Partitions(("ann", "bob", "cat"))
BOTH = [("two", "bob"), ("x", "cat")]


def as_it_came(delivered: DataFrame) -> DataFrame:
    return delivered


def corrected(delivered: DataFrame) -> DataFrame:
    return delivered.selectExpr("decode(id, 'two', '2', id) AS id", *DELIVERED.column_names[1:])


class Killed(BaseException):
    """Stands for the end of the process."""


@dataclass
class AtRemoval(WriteListener):
    """Ends the write of a quarantine that follows a publish."""

    error: BaseException

    def begun(self, write: BegunWrite) -> None:
        if write.run.follows:
            raise self.error


def dying(engine: Engine, error: BaseException | None = None) -> Engine:
    return replace(engine, listener=AtRemoval(error or Killed()))


@pytest.fixture
def delivered(filled_engine: Callable[..., Engine]) -> Engine:
    rows = [("1", "ann"), *BOTH]
    return filled_engine(lambda engine: write(engine, SOURCE, delivery(engine, "a", rows)))


def of_mode(mode: WriteMode) -> IcebergTable:
    by_name = isinstance(mode, OverwritePartitions)
    return replace(WITH_SOURCE, write=mode, partitioning=["name"] if by_name else [])


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Append(), marks=pytest.mark.soak),
        Merge(on=["name"]),
        pytest.param(Overwrite(), marks=pytest.mark.soak),
        OverwritePartitions(by="name"),
    ],
    ids=["append", "merge", "overwrite", "partitions"],
)
def test_the_next_write_takes_out_what_a_killed_one_published(
    delivered: Engine, mode: WriteMode
) -> None:
    table = of_mode(mode)
    of_whole = isinstance(mode, Overwrite)
    inputs = {"delivered": latest(DELIVERED.name)} if of_whole else NEW_ROWS
    partitions = None
    if isinstance(mode, OverwritePartitions):
        partitions, inputs = BY_NAME, {"delivered": latest(DELIVERED.name, by="name")}
    by_itself = Run("three", partitions, full_recompute=False)
    write(delivered, table, as_it_came, inputs, replace(by_itself, run_id="one"))
    with pytest.raises(Killed):
        write(
            dying(delivered),
            table,
            corrected,
            inputs,
            replace(EVERYTHING, partitions=partitions),
        )
    assert content(delivered, table.name, "id", "name") == [(1, "ann"), (2, "bob")]
    assert content(delivered, QUARANTINE, "id", "name") == BOTH

    again = write(delivered, table, corrected, inputs, by_itself)

    assert isinstance(again, Unchanged) or of_whole
    assert content(delivered, table.name, "id", "name") == [(1, "ann"), (2, "bob")]
    assert content(delivered, QUARANTINE, "id", "name") == [("x", "cat")]
    assert nothing_is_noted(delivered)


def test_a_row_leaves_whose_correction_the_table_had(delivered: Engine) -> None:
    """The killed run commits nothing, and notes how far it read."""
    table = replace(WITH_SOURCE, write=Merge(on=["name"]), columns=WITH_SOURCE.columns[:2])
    write(delivered, SOURCE, delivery(delivered, "b", [("y", "ann")]))
    write(delivered, table, as_it_came, NEW_ROWS, Run("one"))
    write(delivered, SOURCE, delivery(delivered, "c", [("1", "ann")]))
    before = snapshot_id(delivered, table.name)
    assert content(delivered, QUARANTINE, "id", "name") == [*BOTH, ("y", "ann")]
    with pytest.raises(Killed):
        write(dying(delivered), table, as_it_came, NEW_ROWS, Run("two"))
    assert snapshot_id(delivered, table.name) == before

    write(delivered, table, as_it_came, NEW_ROWS, Run("three"))
    assert content(delivered, QUARANTINE, "id", "name") == BOTH
    assert nothing_is_noted(delivered)


def test_what_fails_after_a_publish_fails_no_run(
    delivered: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    table = of_mode(Append())
    write(delivered, table, as_it_came, NEW_ROWS, Run("one"))
    busy = TableBusy(f"{QUARANTINE} is written.", next_step="Wait.")
    published = write(dying(delivered, busy), table, corrected, NEW_ROWS, EVERYTHING)
    assert isinstance(published, Published)
    assert f"{QUARANTINE} is written" in caplog.text
    assert "the next write of silver.numbers" in caplog.text

    write(delivered, table, corrected, NEW_ROWS, Run("three"))
    assert content(delivered, QUARANTINE, "id", "name") == [("x", "cat")]


def test_nothing_leaves_for_what_was_rolled_back(delivered: Engine) -> None:
    table = of_mode(Merge(on=["name"]))
    write(delivered, table, as_it_came, NEW_ROWS, Run("one"))
    before = snapshot_id(delivered, table.name)
    with pytest.raises(Killed):
        write(dying(delivered), table, corrected, NEW_ROWS, EVERYTHING)
    name = f"{delivered.catalog.name}.{table.name}"
    delivered.sql(
        f"CALL {delivered.catalog.name}.system.rollback_to_snapshot({literal(name)}, {before})"
    )
    write(delivered, table, as_it_came, NEW_ROWS, Run("three"))
    assert content(delivered, table.name, "id", "name") == [(1, "ann")]
    assert content(delivered, QUARANTINE, "id", "name") == BOTH


def nothing_is_noted(engine: Engine) -> bool:
    noted = read_history(engine, WITH_SOURCE.name).properties
    is_noted = any(name.startswith("lakehouse.leaves") for name in noted)
    return not is_noted and not engine.store.objects("staging/kept-rows/")
