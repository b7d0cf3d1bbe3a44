"""Tables are set back, by SQL, to a state that has people who are being erased, and computed on."""

from collections import Counter
from pathlib import Path

import pytest

from lakehouse.iceberg.metadata.history import read_history
from lakehouse.privacy import erase as erasing
from lakehouse.privacy.erase import STEPS
from lakehouse.privacy.erasure_steps import erase_rows
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.privacy.story.customers import DAYS, Customers, file_of
from lakehouse_tests.privacy.story.everywhere import Everywhere


@pytest.mark.soak
def test_the_erased_rows_stay_out(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only until their past is removed is there a state to set back to."""
    tables = (RAW, CLEAN, QUARANTINE, PROFILES)
    customers = Customers(40, 3)
    there = Everywhere(settings_at(tmp_path / "home"), customers, visits=())
    there.fill()
    mains = {table: read_history(there.engine, table).refs["main"] for table in tables}
    rows = there.rows_of_others()[RAW]
    with monkeypatch.context() as patch:
        number = [step for _, step in STEPS].index(erase_rows)
        patch.setattr(erasing, "STEPS", STEPS[: number + 1])
        there.erase()
    for table, snapshot_id in mains.items():
        there.set_back(table, snapshot_id)
        assert there.ids_in(table) != Counter()

    there.put("inbox/bnpl/more.csv", file_of([customers.row(one, DAYS[0]) for one in (0, 1)]))
    assert there.ingest().success

    assert not any(there.ids_in(table) for table in tables)
    # What waited in the inbox, and the new file.
    assert sum((there.rows_of_others()[RAW] - rows).values()) == 2
    erasure = there.erase(now=True)
    assert erasure.request.state == "verified", erasure.proof and erasure.proof.as_text()
    assert there.failed_checks() == []
