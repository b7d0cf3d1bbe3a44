"""The chain of what was done: whatever is changed in it, the first row that is wrong is named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import EqualTo

from lakehouse.assets.audit.gdpr_actions import TABLE
from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.write import append_without_spark
from lakehouse.privacy.audit_chain import (
    BEGIN,
    AuditedAction,
    _chained,
    _Head,
    append_actions,
    check_chain,
    row_hash,
    verify_chain,
)
from lakehouse.settings import Settings

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
DIGEST = "ab" * 32
ERASED = AuditedAction(
    "rows_erased",
    "R-1",
    "me",
    subject="customer_id",
    person=DIGEST,
    counts={"silver.orders.rows": 3},
    snapshots={"silver.orders": 2**62},
    files=[DIGEST],
)


@pytest.fixture
def engine(engine_without_spark: Engine) -> Engine:
    return engine_without_spark


def rows(engine: Engine) -> list[dict[str, Any]]:
    read = engine.catalog.load(TABLE.name).scan().to_arrow().to_pylist()
    return sorted(read, key=lambda row: row["sequence"])


def test_rows_are_appended_in_a_chain_that_is_whole(settings: Settings, engine: Engine) -> None:
    append_actions(settings, engine, TABLE, [ERASED, ERASED], "R-1/rows", now=NOW)
    append_actions(settings, engine, TABLE, [AuditedAction("verified", "R-1", "me")], "R-1/end")
    assert [row["sequence"] for row in rows(engine)] == [1, 2, 3]
    assert rows(engine)[0]["previous_hash"] == BEGIN
    assert (rows(engine)[0]["at"], rows(engine)[0]["person"]) == (NOW, DIGEST)
    report = verify_chain(settings, engine, TABLE)
    assert (report.is_whole, report.rows) == (True, 3)
    assert str(report) == "3 rows, unchanged"


def test_an_occasion_is_appended_once(settings: Settings, engine: Engine) -> None:
    assert append_actions(settings, engine, TABLE, [ERASED], "R-1/rows") is not None
    assert append_actions(settings, engine, TABLE, [ERASED], "R-1/rows") is None
    assert len(rows(engine)) == 1


def test_another_machine_that_comes_first_does_not_fork_it(
    settings: Settings, engine: Engine, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a lock of its own, and commits after this one has read the chain."""
    append_actions(settings, engine, TABLE, [ERASED], "R-0")
    elsewhere = replace(engine, lock_dir=tmp_path / "elsewhere")
    append, is_first = append_without_spark._append, [True]

    def overtaken(*arguments):
        if is_first:
            is_first.clear()
            append_actions(settings, elsewhere, TABLE, [ERASED], "R-2")
        return append(*arguments)

    monkeypatch.setattr(append_without_spark, "_append", overtaken)
    append_actions(settings, engine, TABLE, [ERASED], "R-1")
    assert [(row["sequence"], row["run_id"]) for row in rows(engine)] == [
        (1, "R-0"),
        (2, "R-2"),
        (3, "R-1"),
    ]
    assert verify_chain(settings, engine, TABLE).is_whole


@pytest.mark.parametrize("occasions", ["ab", "abc"])
def test_a_removed_row_is_named(settings: Settings, engine: Engine, occasions: str) -> None:
    """Within the chain, and at its end."""
    for occasion in occasions:
        append_actions(settings, engine, TABLE, [ERASED], occasion)
    engine.catalog.load(TABLE.name).delete(EqualTo("sequence", 2))
    report = verify_chain(settings, engine, TABLE)
    assert report.broken_at == 2
    engine.catalog.client.drop_table(TABLE.name)
    assert verify_chain(settings, engine, TABLE).broken_at == 1


def test_a_chain_that_was_computed_anew_is_not_the_one_that_was_appended(
    settings: Settings, engine: Engine
) -> None:
    append_actions(settings, engine, TABLE, [ERASED], "a", now=NOW)
    other = chain(1)
    assert check_chain(other, (0, BEGIN)).is_whole
    appended = rows(engine)[0]
    assert check_chain(other, (1, appended["hash"])).broken_at == 1


def chain(length: int) -> list[dict[str, Any]]:
    actions = [replace(ERASED, counts={"rows": number}) for number in range(length)]
    return _chained(_Head(0, BEGIN), actions, "occasion", NOW)


OTHER = {
    "sequence": 99,
    "at": NOW + timedelta(microseconds=1),
    "action": "exported",
    "request": "R-2",
    "subject": None,
    "person": "cd" * 32,
    "who": "you",
    "counts": "{}",
    "snapshots": "{}",
    "files": "[]",
    "run_id": "another",
    "previous_hash": DIGEST,
    "hash": DIGEST,
}


def test_each_column_is_covered_by_the_hash() -> None:
    assert OTHER.keys() == set(TABLE.column_names)


@pytest.mark.long
@given(st.data())
def test_any_change_of_any_row_is_named_by_the_first_row_that_it_breaks(data) -> None:
    length = data.draw(st.integers(1, 6))
    appended = chain(length)
    head = (length, appended[-1]["hash"])
    changed = [dict(row) for row in appended]
    at = data.draw(st.integers(0, length - 1))
    kind = data.draw(st.sampled_from(["change", "rehash", "remove", "double", "swap"]))
    if kind in ("change", "rehash"):
        name = data.draw(st.sampled_from(sorted(OTHER)))
        changed[at][name] = OTHER[name]
        if kind == "rehash" and name != "hash":
            changed[at]["hash"] = row_hash(changed[at])
    elif kind == "remove":
        del changed[at]
    elif kind == "double":
        changed.insert(at, dict(changed[at]))
    else:
        other = data.draw(st.integers(0, length - 1))
        first, second = changed[at], changed[other]
        first["sequence"], second["sequence"] = second["sequence"], first["sequence"]
        if at == other:
            assert check_chain(changed, head).is_whole
            return
        at = min(at, other)
    report = check_chain(data.draw(st.permutations(changed)), head)
    assert not report.is_whole
    # With its own hash computed anew, it is the next row that does not follow; of a double, the
    # one or the other.
    assert report.broken_at in ((at + 1, at + 2) if kind in ("rehash", "double") else (at + 1,))


@pytest.mark.parametrize(
    "parts",
    [
        {"action": "Anna was erased"},
        {"who": "Anna Example"},
        {"person": "anna@example.org"},
        {"subject": "customer\nid"},
        {"counts": {"rows of Anna": 1}},
        {"counts": {"rows": "Anna"}},
        {"files": ["anna.csv"]},
        {"request_id": "anna@example.org"},
    ],
    ids=str,
)
def test_no_free_text_has_a_place_in_it(parts: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        replace(ERASED, **parts)
    assert "nna" not in str(raised.value)
