"""`lakehouse status --trend` draws numbers over time, and has them in JSON; no JVM."""

import pyarrow as pa
import pytest

from lakehouse.cli.tables.status import BLOCKS, sparkline
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit


@pytest.fixture
def grown(settings: Settings, table_there: str) -> str:
    """A table that got two rows, one after the other."""
    for _ in range(2):
        Catalog.of(settings).load(table_there).append(pa.table({"id": [1]}))
    return table_there


def test_json_has_the_numbers(lakehouse: Lakehouse, grown: str):
    found = {
        one["table"]: one for one in records(lakehouse("status", "--trend", "--format", "json"))
    }
    assert [rows for _, rows in found[grown]["rows"]] == [1, 2]
    assert found[grown]["rows"][0][0].endswith("Z")
    sizes = [size for _, size in found[grown]["bytes"]]
    assert sizes == sorted(sizes)
    assert found[grown]["failed_share"] == []
    assert found["silver.fruits"]["rows"] == []


def test_the_table_shows_a_line_for_each_number(lakehouse: Lakehouse, grown: str):
    heading, _, line, footer = lakehouse("status", "--trend").out
    cells = [cell.strip() for cell in line.split("|")]
    assert [cell.strip() for cell in heading.split("|")][:3] == [
        "table",
        "rows",
        "rows over time",
    ]
    assert cells[:2] == [grown, "2"]
    assert cells[2] == BLOCKS[0] * 23 + BLOCKS[-1]
    assert footer.startswith("(1 table, ")
    assert "a mark is " in footer


@pytest.mark.parametrize(
    ("values", "lowest", "line"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], None, BLOCKS),
        ([10, None, 20], None, "▁·█"),
        ([5, 5], None, "▅▅"),
        ([0, 0], 0.0, "▁▁"),
        ([0.5, 1.0], 0.0, "▅█"),
        ([None, None], None, ""),
    ],
)
def test_a_line_goes_from_the_least_to_the_greatest(values, lowest, line):
    assert sparkline(values, lowest=lowest) == line
