"""An erasure removes no file that another host, with other locks, is about to commit."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Transaction

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.erasure.people import ORDERS, content, fill, no_spark
from lakehouse_tests.iceberg.upkeep.tables import make_older_on_s3

pytestmark = [pytest.mark.unit, pytest.mark.long]

DAY = date(2024, 1, 1)
BEN, CLEO = (2, 8, "ben@example.org", "b", DAY), (3, 9, "cleo@example.org", "c", DAY)


@pytest.fixture
def hosts(
    aws_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Engine]:
    """Two engines with one catalog and a table in it, each with locks of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_settings.endpoint_url or "")
    engines = []
    for name in ("first", "second"):
        catalog = Catalog.of(aws_settings)
        locks = tmp_path / name / "locks"
        engines.append(Engine(catalog, no_spark, locks, masking_key=b"testing"))
    fill(engines[0], ORDERS, [BEN])
    return engines


def rows_of(engine: Engine, *rows: Iterable[object]) -> pa.Table:
    schema = engine.catalog.load(ORDERS.name).schema().as_arrow()
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema)


def erase_beside(hosts: list[Engine], transaction: Transaction) -> StepResult:
    """Remove what has no name from the one host, then commit on the other."""
    (result,) = remove_unnamed(hosts[0], [ORDERS.name])
    transaction.commit_transaction()
    return result


def test_a_write_of_another_host_keeps_its_files(hosts: list[Engine]) -> None:
    writing = hosts[1].catalog.load(ORDERS.name).transaction()
    writing.append(rows_of(hosts[1], CLEO))

    result = erase_beside(hosts, writing)

    assert content(hosts[0], ORDERS) == [BEN, CLEO]
    assert result.outcome == "partial"
    due = datetime.fromtimestamp(result.step_metrics["due_at"], UTC) - datetime.now(UTC)
    assert timedelta(hours=23) < due <= timedelta(days=1)


def test_a_compaction_of_another_host_keeps_the_rows(hosts: list[Engine]) -> None:
    compacting = hosts[1].catalog.load(ORDERS.name).transaction()
    compacting.overwrite(rows_of(hosts[1], BEN))

    erase_beside(hosts, compacting)

    assert content(hosts[0], ORDERS) == [BEN]


def test_what_is_a_day_old_goes(hosts: list[Engine]) -> None:
    table = hosts[0].catalog.load(ORDERS.name)
    lost = f"{table.location()}/data/lost.parquet"
    with table.io.new_output(lost).create() as file:
        file.write(b"left behind")
    make_older_on_s3(lost, days=2)

    (result,) = remove_unnamed(hosts[0], [ORDERS.name])

    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 1)
    assert not table.io.new_input(lost).exists()
