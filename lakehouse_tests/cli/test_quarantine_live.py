"""`lakehouse quarantine replay` and `clear` on the pipeline of the samples."""

from pathlib import Path

import pytest

from lakehouse_tests.cli.conftest import put_fruits
from lakehouse_tests.cli.outcomes import records

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.long]


@pytest.fixture
def quarantined(lakehouse, home: Path):
    """A lakehouse where two fruits of three were quarantined."""
    put_fruits(home, "a.csv", "1,Apple,false", "x,Fig,false", "3,,true")
    assert lakehouse("ingest", "fruits").code == 0
    return lakehouse


def test_what_is_quarantined_again_stays_and_what_is_cleared_is_counted(quarantined) -> None:
    ran = quarantined("quarantine", "replay", "silver.fruits")
    assert ran.code == 0
    assert ran.out == [
        "silver.fruits: unchanged, 1 row",
        "silver.fruits: 0 of 2 quarantined rows left the quarantine, 2 remain, 0 new.",
        "Delete rows that cannot be corrected: lakehouse quarantine clear silver.fruits --why …",
    ]
    because = ("--why", "the supplier is gone", "--by", "ann")
    ran = quarantined("quarantine", "clear", "silver.fruits", "--rule", "castable_id", *because)
    assert ran.out == ["silver.fruits: 1 quarantined row cleared by ann."]
    (found,) = records(quarantined("quarantine", "silver.fruits", "--format", "json"))
    assert [rule["rule"] for rule in found["rules"]] == ["not_null_fruit"]
    (cleared,) = found["cleared"]
    del cleared["at"]
    assert cleared == {"by": "ann", "why": "the supplier is gone", "rows": 1}
    assert quarantined("quarantine", "replay", "silver.fruits").out[-2] == (
        "silver.fruits: 0 of 1 quarantined row left the quarantine, 1 remain, 0 new."
    )
    again = quarantined(
        "quarantine", "clear", "silver.fruits", "--rule", "castable_id", *because
    )
    assert again.out == ["silver.fruits: no such row is in quarantine."]
    checked = quarantined("check", "silver.fruits")
    assert checked.code == 0
