"""A request knows which tables lost rows, in whatever call, until all sums are computed anew."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy import erasure_steps
from lakehouse.privacy import run_erasure as erasing
from lakehouse.settings import Settings
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    HERS,
    NAMED,
    SUMS,
    Home,
    expire_without_spark,
)
from lakehouse_tests.privacy.small_lakehouse import MAILS, ORDERS, PROFILES, RAW, People

pytestmark = [pytest.mark.unit, pytest.mark.long]
ASKED = {RAW.name: 1, ORDERS.name: 1, PROFILES.name: 1, MAILS.name: 1}


class Computing:
    """Stands for what computes tables anew, which starts Spark."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, int]] = []

    def __call__(self, _: Any, __: str, sums: Any, lost: Mapping[str, int]) -> list[str]:
        self.calls.append(lost)
        return list(sums.names)


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch) -> Computing:
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    stands_for = Computing()
    monkeypatch.setattr(erasure_steps, "recompute_tables", stands_for)
    return stands_for


@pytest.fixture
def there(settings: Settings) -> Home:
    home = Home(settings).with_keeping(replace(SUMS, on_erasure="recompute"))
    home.fill()
    return home


def test_rows_that_went_before_anybody_could_record_it_are_known(
    there: Home, computing: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(engine: Any, table: Any, *others: Any) -> Any:
        deleted = delete_rows(engine, table, *others)
        if table.name == ORDERS.name:
            raise KeyboardInterrupt
        return deleted

    with monkeypatch.context() as patch:
        patch.setattr(erasure_steps, "delete_rows", killed)
        with pytest.raises(KeyboardInterrupt):
            there.erase(*NAMED)

    there.erase()

    assert computing.calls == [ASKED]


def test_rows_that_come_and_go_again_have_their_sums_computed_once_more(
    there: Home, computing: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.lose_a_write()
    assert there.erase(*NAMED).request.state == "pending_physical"
    there.erase()
    people = People(there.engine, there.erasable.subjects)
    people.add(ORDERS, (int(HERS), ANNA, 9.0))

    def killed(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # After rows went, and before their sums are computed.
        steps = [
            (said, killed if step is erasure_steps.recompute_sums else step)
            for said, step in erasing.STEPS
        ]
        patch.setattr(erasing, "STEPS", steps)
        with pytest.raises(KeyboardInterrupt):
            there.erase()
    there.erase()

    assert [lost[ORDERS.name] for lost in computing.calls] == [1, 2]
