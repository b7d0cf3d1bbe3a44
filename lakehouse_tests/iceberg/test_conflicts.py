"""Concurrent writers, unclear commits and a locked database: each row is stored once."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql.readwriter import DataFrameWriterV2

from lakehouse.errors import CommitUnknown
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch, commit_retries
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write import append_or_overwrite, merge_rows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse_tests.conftest import on_embedded_alone
from lakehouse_tests.iceberg.declarations import content
from lakehouse_tests.iceberg.kills import at_half, slow

COLUMNS = [Column("id", "string"), Column("n", "int")]
KEPT = IcebergTable(name="silver.kept", comment="", columns=COLUMNS, write=Append(once_by=()))
MODES = {
    "append": KEPT,
    "overwrite": replace(KEPT, write=Overwrite()),
    "overwrite partitions": replace(
        KEPT, partitioning=["id"], write=OverwritePartitions(by="id")
    ),
    "merge": replace(KEPT, write=Merge(on=["id"])),
}
UNKNOWN = (
    "org.apache.iceberg.exceptions.CommitStateUnknownException: the catalog did not answer"
)


class Stranger(Exception):
    """What Spark raises for a commit whose outcome the catalog did not tell."""


def rows(engine: Engine, *ids: str, n: int = 1) -> Callable[..., object]:
    values = ", ".join(f"('{id_}', {n})" for id_ in ids)
    return lambda **_: engine.sql(f"SELECT * FROM VALUES {values} AS given(id, n)")


def elsewhere(engine: Engine, tmp_path: Path) -> Engine:
    """Return the same catalog on another host, that does not see this one's locks."""
    return replace(engine, lock_dir=tmp_path / "elsewhere")


def once(action: Callable[[], object]) -> Callable[[], None]:
    left = [action]
    return lambda: left.pop()() if left else None  # type: ignore[func-returns-value]


def before(monkeypatch, module, name: str, action: Callable[[], None]) -> None:
    """Have something happen each time before the engine calls a function."""
    real = getattr(module, name)

    def late(*given, **named):
        action()
        return real(*given, **named)

    monkeypatch.setattr(module, name, late)


def is_linear(engine: Engine, table: IcebergTable) -> bool:
    """Whether main went from each snapshot to its child, and no branch of a write is left."""
    history = read_history(engine, table.name)
    shown = [snapshot_id for _, snapshot_id in history.log]
    parents = [history.snapshots[snapshot_id].parent_id for snapshot_id in shown[1:]]
    return parents == shown[:-1] and set(history.refs) == {"main"}


@pytest.mark.parametrize("mode", MODES)
def test_a_write_that_came_second_is_made_again_from_what_the_first_left(
    embedded_engine: Engine, tmp_path: Path, monkeypatch, mode: str
) -> None:
    table, seen = MODES[mode], []
    write(
        embedded_engine,
        table,
        rows(embedded_engine, "a", "b"),
        run=Run("", Partitions(("a", "b"))),
    )
    other = elsewhere(embedded_engine, tmp_path)
    between = once(
        lambda: write(other, replace(table, write=Append(once_by=())), rows(other, "x"))
    )
    for module in (append_or_overwrite, merge_rows):
        before(monkeypatch, module, "publish", between)

    def compute(standing):
        seen.append(standing.count())
        return standing.where("id <> 'a'").unionByName(rows(embedded_engine, "a", n=seen[-1])())

    only_a = lambda standing: compute(standing).where("id = 'a'")  # noqa: E731
    done = write(
        embedded_engine,
        table,
        compute if mode == "overwrite" else only_a,
        {"standing": latest(table.name)},
        Run("", Partitions(("a",))),
    )

    assert isinstance(done, Published)
    assert (done.attempts, seen) == (2, [2, 3])
    appended = [("a", 1)] if mode == "append" else []
    assert content(embedded_engine, table.name) == [*appended, ("a", 3), ("b", 1), ("x", 1)]
    assert is_linear(embedded_engine, table)


@pytest.mark.parametrize("happened", [True, False], ids=["it happened", "it did not happen"])
@pytest.mark.parametrize("at", ["staging", "publishing"])
def test_a_commit_of_unknown_outcome_is_looked_up(
    embedded_engine: Engine, monkeypatch, at: str, happened: bool
) -> None:
    write(embedded_engine, KEPT, rows(embedded_engine, "a"))
    unclear = once(lambda: _fail(UNKNOWN))
    owner, name = (Engine, "sql") if at == "publishing" else (DataFrameWriterV2, "append")
    _spoil(monkeypatch, owner, name, unclear, happened=happened)

    done = write(embedded_engine, KEPT, rows(embedded_engine, "b"))

    assert isinstance(done, Published)
    assert content(embedded_engine, KEPT.name) == [("a", 1), ("b", 1)]
    assert done.snapshot_id == read_history(embedded_engine, KEPT.name).main.snapshot_id
    assert is_linear(embedded_engine, KEPT)


def test_a_publish_that_stays_unknown_is_not_made_again(
    embedded_engine: Engine, monkeypatch
) -> None:
    """It may happen yet, and then a second one would double its rows."""
    write(embedded_engine, KEPT, rows(embedded_engine, "a"))
    monkeypatch.setattr(commit_retries, "pause", lambda attempt: None)
    computed = []

    def compute():
        computed.append(1)
        return rows(embedded_engine, "b")()

    with monkeypatch.context() as patch:
        _spoil(patch, Engine, "sql", lambda: _fail(UNKNOWN), happened=False)
        with pytest.raises(CommitUnknown, match="the catalog did not answer"):
            write(embedded_engine, KEPT, compute)

    assert computed == [1]
    assert content(embedded_engine, KEPT.name) == [("a", 1)]


def test_what_was_published_is_not_made_again_where_its_branch_cannot_be_dropped(
    embedded_engine: Engine, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            branch, "drop_branch", lambda *_: _fail("CommitFailedException: somebody was first")
        )
        write(embedded_engine, KEPT, rows(embedded_engine, "a"))
    assert content(embedded_engine, KEPT.name) == [("a", 1)]

    write(embedded_engine, KEPT, rows(embedded_engine, "b"))

    assert content(embedded_engine, KEPT.name) == [("a", 1), ("b", 1)]
    assert is_linear(embedded_engine, KEPT)


def test_a_branch_that_comes_back_on_a_newer_main_is_not_published(
    embedded_engine: Engine, tmp_path: Path
) -> None:
    """A commit to a dropped branch creates it again, from the newer main."""
    table = MODES["overwrite"]
    write(embedded_engine, table, rows(embedded_engine, "a"))
    other = elsewhere(embedded_engine, tmp_path)
    gates = [tmp_path / "gate", tmp_path / "open"]
    for gate in gates:
        gate.mkdir()
    (gates[1] / "opened").touch()

    def interfere():
        (fence,) = [
            ref for ref in read_history(other, table.name).refs if ref.startswith("audit_")
        ]
        branch.drop_branch(other, table.name, fence)
        write(other, replace(table, write=Append(once_by=())), rows(other, "x"))
        (gates[0] / "opened").touch()

    at_half(gates[0], interfere)
    tries = iter(gates)

    def compute(standing):
        return slow(standing.unionByName(rows(embedded_engine, "b")()), next(tries))

    done = write(embedded_engine, table, compute, {"standing": latest(table.name)})

    assert done.attempts == 2
    assert content(embedded_engine, table.name) == [("a", 1), ("b", 1), ("x", 1)]
    assert is_linear(embedded_engine, table)


def test_what_was_planned_before_another_published_is_planned_anew(
    embedded_engine: Engine, tmp_path: Path, monkeypatch
) -> None:
    source = replace(KEPT, name="bronze.given")
    inputs = {"given": incremental(source.name)}

    def compute(engine: Engine) -> None:
        write(engine, KEPT, lambda given: given, inputs)

    write(embedded_engine, source, rows(embedded_engine, "a"))
    compute(embedded_engine)
    write(embedded_engine, source, rows(embedded_engine, "b"))
    other = elsewhere(embedded_engine, tmp_path)
    before(monkeypatch, branch, "create_branch", once(lambda: compute(other)))
    compute(embedded_engine)
    assert content(embedded_engine, KEPT.name) == [("a", 1), ("b", 1)]


@on_embedded_alone("Glue is no database that somebody locks")
def test_a_database_that_is_locked_is_waited_for(embedded_engine: Engine, home: Path) -> None:
    write(embedded_engine, KEPT, rows(embedded_engine, "a"))
    locked, released = Event(), []

    def hold_the_database():
        with closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            locked.set()
            released.append(Event().wait(1.5))
            database.execute("COMMIT")

    holder = Thread(target=hold_the_database)
    holder.start()
    locked.wait()
    done = write(embedded_engine, KEPT, rows(embedded_engine, "b"))

    assert released, "the write did not wait"
    holder.join()
    assert done.attempts == 1
    assert content(embedded_engine, KEPT.name) == [("a", 1), ("b", 1)]


def test_a_branch_begun_elsewhere_is_dropped_after_a_day_and_not_before(
    embedded_engine: Engine, tmp_path: Path, monkeypatch
) -> None:
    """The age of main does not matter: a writer elsewhere can write it right now."""
    write(embedded_engine, KEPT, rows(embedded_engine, "a"))
    other = elsewhere(embedded_engine, tmp_path)
    young = branch.audit_branch(branch.new_write_id())
    monkeypatch.setattr(branch.time, "time_ns", lambda: 1_000_000_000 * 10**9)
    old = branch.audit_branch(branch.new_write_id())
    monkeypatch.undo()
    for name in (young, old):
        branch.create_branch(other, KEPT.name, name)

    write(embedded_engine, KEPT, rows(embedded_engine, "b"))

    assert set(read_history(embedded_engine, KEPT.name).refs) == {"main", young}


def _spoil(patch, owner, name: str, unclear, *, happened: bool) -> None:
    """Have a commit raise an unclear error, after or before it; of SQL, the publish."""
    real = getattr(owner, name)

    def spoilt(self, *given, **named):
        is_other = name == "sql" and "fast_forward" not in given[0]
        if not is_other and not happened:
            unclear()
        done = real(self, *given, **named)
        if not is_other and happened:
            if name == "sql":
                done.collect()
            unclear()
        return done

    patch.setattr(owner, name, spoilt)


def _fail(message: str) -> None:
    raise Stranger(message)
