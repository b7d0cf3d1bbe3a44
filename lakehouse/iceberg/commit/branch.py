"""Branches: the fence around a write, its publication, and what is left of a refused or dead
one.
"""

import re
import secrets
import time
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.commit.lock import WriteLog
from lakehouse.iceberg.commit.retry import retry_on_refs
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, moment, read_history
from lakehouse.tables.quoting import identifier, literal

AUDIT_KEPT_FOR = timedelta(days=1)
"""How old the branch of a write of another host is when its writer counts as dead."""
_OF_WRITE = re.compile(r"^(?:audit|refused)_([0-9a-f]{12})[0-9a-f]{20}$")


def new_write_id() -> str:
    """Make an id of 32 hex digits; the first twelve are the time in milliseconds, which a
    branch does not tell.
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def audit_branch(write_id: str) -> str:
    """Name the branch that a write is staged on."""
    return f"audit_{write_id}"


def refused_branch(write_id: str) -> str:
    """Name the branch that a refused candidate is kept on."""
    return f"refused_{write_id}"


def begun_at(branch: str) -> datetime | None:
    """Return when the write began that an audit or refused branch is of; None for other
    branches.

    The commit that a branch points at tells nothing: that of main may be a year old.
    """
    match = _OF_WRITE.match(branch)
    return moment(int(match[1], 16)) if match else None


def kept_until(branch: str, refused_for: timedelta) -> datetime | None:
    """Return until when an audit or refused branch is kept; None for other branches.

    :param refused_for: how long refused ones are.
    """
    begun = begun_at(branch)
    if begun is None:
        return None
    return begun + (refused_for if is_refused(branch) else AUDIT_KEPT_FOR)


def is_of_write(branch: str) -> bool:
    """Whether a branch belongs to a write, and not to people."""
    return is_audit(branch) or is_refused(branch)


def is_audit(branch: str) -> bool:
    """Whether a branch stages a write."""
    return branch.startswith("audit_")


def is_refused(branch: str) -> bool:
    """Whether a branch keeps a refused candidate."""
    return branch.startswith("refused_")


def create_branch(engine: Engine, table: str, branch: str) -> None:
    """Branch off main; on a table without a snapshot, off an empty one."""
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} CREATE BRANCH {identifier(branch)}"
    )
    retry_on_refs(lambda: engine.sql(statement), done=lambda: _has(engine, table, branch))


def keep_refused(
    engine: Engine, table: str, write_id: str, snapshot_id: int, kept_for: timedelta
) -> str:
    """Keep a candidate for some time, for people to look at; `expire_snapshots` drops it after
    that.

    :param kept_for: a day or more; what is more than whole days is left off.
    """
    branch = refused_branch(write_id)
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} CREATE BRANCH {identifier(branch)} "
        f"AS OF VERSION {snapshot_id} RETAIN {kept_for.days} DAYS"
    )
    retry_on_refs(lambda: engine.sql(statement), done=lambda: _has(engine, table, branch))
    return branch


def drop_branch(engine: Engine, table: str, branch: str) -> None:
    """Drop a branch; one that is not there is left alone."""
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} DROP BRANCH IF EXISTS"
        f" {identifier(branch)}"
    )
    retry_on_refs(lambda: engine.sql(statement), done=lambda: not _has(engine, table, branch))


def fast_forward(engine: Engine, table: str, branch: str, write_id: str) -> None:
    """Move main to the branch; fails where somebody published since the branch was made.

    A publish whose outcome is unknown is looked up by its write id before it is tried again.
    """
    catalog = engine.catalog.name
    statement = (
        f"CALL {identifier(catalog)}.system.fast_forward(table =>"
        f" {literal(f'{catalog}.{table}')}, branch => {literal(MAIN)}, to => {literal(branch)})"
    )
    retry_on_refs(
        lambda: engine.sql(statement).collect(),
        done=lambda: read_history(engine, table).has_published(write_id),
    )


def drop_dead_branches(engine: Engine, table: str, log: WriteLog) -> None:
    """Drop the branches of writers that died: those begun on this host, and old ones of others;
    needs the lock.
    """
    history = read_history(engine, table)
    dead = {audit_branch(write_id) for write_id in log.dead()} & set(history.refs)
    for branch in dead | _left_by_others(history, datetime.now(UTC) - AUDIT_KEPT_FOR):
        drop_branch(engine, table, branch)


def _left_by_others(history: History, before: datetime) -> set[str]:
    # A live writer elsewhere that loses its branch to this tries again from the start; nothing
    # is lost.
    left = set()
    for branch in filter(is_audit, history.refs):
        begun = begun_at(branch)
        if begun and begun < before:
            left.add(branch)
    return left


def _has(engine: Engine, table: str, branch: str) -> bool:
    return branch in read_history(engine, table).refs
