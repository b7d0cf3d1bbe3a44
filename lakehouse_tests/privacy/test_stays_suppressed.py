"""Who was erased stays gone on real Spark: delivered again, computed again, set back; and who comes
back later is taken.
"""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.values.write_result import Unchanged
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.conftest import engine_on as engine_of
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.examples import examples
from lakehouse_tests.privacy.staying_suppressed import (
    APPENDED,
    BY_SHOP,
    MERGED,
    OVERWRITTEN,
    SUMS,
    VISITS,
    Visits,
)

PAST = "2024-01-0{}T10:00:00Z"
LATER = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def visits(embedded_engine: Engine, settings: Settings) -> Visits:
    return Visits(embedded_engine, settings)


@pytest.fixture
def never(spark, tmp_path: Path) -> Visits:
    """Another lakehouse, for what it would be where Ann never was."""
    home = tmp_path / "never"
    home.mkdir()
    settings = settings_at(home)
    return Visits(engine_of(spark, settings), settings)


def some_rows(number: int, customers: list[str], seed: int) -> list[str]:
    """Visits of some customers, of which a few are refused: their visit is no number."""
    chance = random.Random(seed)
    rows = []
    for at in range(number):
        visit = chance.choice(["x", *[str(100 * seed + at)] * 6])
        moment = PAST.format(chance.randint(1, 9))
        customer = chance.choice(customers)
        rows.append(f"{visit},{customer},{chance.choice('abc')},{moment}")
    return rows


@pytest.mark.long
def test_the_erased_rows_stay_out_and_the_new_one_comes_in(
    visits: Visits, never: Visits
) -> None:
    seed = examples(17, random.randrange(6, 1_000_000))
    table = random.Random(seed).choice([APPENDED, MERGED, OVERWRITTEN, BY_SHOP])
    concerned = (table, SUMS) if table is MERGED else (table,)
    first = [*some_rows(20, ["7", " 007", "8", "9"], seed), f"1,7,a,{PAST.format(1)}"]
    second = [f"2,7,b,{PAST.format(2)}", f"3,+7,b,{LATER}", *some_rows(4, ["8", "9"], 5)]

    visits.deliver("first.csv", *first)
    visits.compute(*concerned)
    old = {one: visits.head(one) for one in (VISITS, table)}
    visits.erase()
    again = visits.deliver("first.csv", *first)
    new = visits.deliver("second.csv", *second)
    visits.compute(*concerned)
    visits.compute(*concerned, in_full=True)
    in_time = visits.everything()
    for one, snapshot_id in old.items():
        visits.set_back(one, snapshot_id)
    visits.compute(*concerned)

    assert isinstance(again.outcome, Unchanged), seed
    assert again.delivery.suppressed_rows == sum(_is_anns(row) for row in first), seed
    assert new.delivery.suppressed_rows == 1
    assert in_time == _deliver_to(never, first, second, *concerned), seed
    # The new row went with the state of bronze that was set back.
    for one in (VISITS, table):
        assert not [row for row in visits.rows(one) if _is_anns(",".join(row))], seed


def _is_anns(row: str) -> bool:
    return row.split(",")[1].strip().lstrip("+0") == "7"


def _deliver_to(
    never: Visits, first: list[str], second: list[str], *concerned: IcebergTable
) -> dict[str, list[tuple]]:
    """Return the rows of the tables where Ann had none before she was erased."""
    never.deliver("first.csv", *(row for row in first if not _is_anns(row)))
    never.deliver("second.csv", *(row for row in second if LATER in row or not _is_anns(row)))
    never.compute(*concerned)
    return never.everything()


@pytest.mark.long
def test_a_source_that_was_set_back_is_erased_again(visits: Visits) -> None:
    visits.deliver("first.csv", f"1,7,a,{PAST.format(1)}", f"2,8,a,{PAST.format(1)}")
    visits.compute(OVERWRITTEN)
    old = visits.head(VISITS)
    visits.erase()
    visits.set_back(VISITS, old)

    visits.compute(OVERWRITTEN)

    assert [row[1] for row in visits.rows(VISITS)] == ["8"]
    assert [row[1] for row in visits.rows(OVERWRITTEN)] == ["8"]


@pytest.mark.long
def test_rows_of_who_is_gone_are_counted_where_a_source_has_them(visits: Visits) -> None:
    rows = [f"1,7,a,{PAST.format(1)}", f"x,7,a,{PAST.format(1)}", f"2,8,a,{PAST.format(1)}"]
    visits.deliver("first.csv", *rows)
    visits.add_ann()

    told = visits.compute(MERGED, SUMS)

    assert told[MERGED.name].suppressed_rows == {VISITS.name: 2}
    assert told[SUMS.name].suppressed_rows == {}
    assert [row[1] for row in visits.rows(MERGED)] == ["8"]
    assert visits.rows(MERGED.quarantine) == []
    assert visits.rows(SUMS) == [("a", "1")]
