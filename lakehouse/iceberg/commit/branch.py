"""Branches of writes: creation, publish, and removal of blocked or abandoned ones."""

import re
import secrets
import time
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import retry_on_refs
from lakehouse.iceberg.commit.lock import WriteLog
from lakehouse.iceberg.metadata.snapshots import MAIN, from_milliseconds, read_history
from lakehouse.tables.quoting import identifier, literal

AUDIT_KEPT_FOR = timedelta(days=1)
"""Age above which the branch of another host's write is abandoned."""
_OF_WRITE = re.compile(r"^(?:audit|refused)_([0-9a-f]{12})[0-9a-f]{20}$")


def new_write_id() -> str:
    """Return an id of 32 hex digits, of which the first twelve are the time in milliseconds."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def audit_branch(write_id: str) -> str:
    """Return the name of a write's staging branch."""
    return f"audit_{write_id}"


def blocked_branch(write_id: str) -> str:
    """Return the name of the branch that retains a blocked candidate."""
    return f"refused_{write_id}"


def begun_at(branch: str) -> datetime | None:
    """Return the start time of a write from its branch; None for other branches.

    The branch's commit is not sufficient: that of main can be a year old.
    """
    match = _OF_WRITE.match(branch)
    return from_milliseconds(int(match[1], 16)) if match else None


def kept_until(branch: str, refused_for: timedelta) -> datetime | None:
    """Return the end of retention of a write's branch; None for other branches.

    :param refused_for: retention of blocked candidates.
    """
    begun = begun_at(branch)
    if begun is None:
        return None
    return begun + (refused_for if is_blocked(branch) else AUDIT_KEPT_FOR)


def is_of_write(branch: str) -> bool:
    """Whether a branch belongs to a write, and not to a user."""
    return is_audit(branch) or is_blocked(branch)


def is_audit(branch: str) -> bool:
    """Whether a branch stages a write."""
    return branch.startswith("audit_")


def is_blocked(branch: str) -> bool:
    """Whether a branch retains a blocked candidate."""
    return branch.startswith("refused_")


def create_branch(engine: Engine, table: str, branch: str) -> None:
    """Create a branch at main; for a table without a snapshot, at an empty one."""
    _change(engine, table, branch, f"CREATE BRANCH {identifier(branch)}")


def keep_blocked(
    engine: Engine, table: str, write_id: str, snapshot_id: int, kept_for: timedelta
) -> str:
    """Retain a blocked candidate for inspection, until `expire_snapshots` drops it.

    :param kept_for: at least a day; truncated to days.
    """
    branch = blocked_branch(write_id)
    version = f"AS OF VERSION {snapshot_id} RETAIN {kept_for.days} DAYS"
    _change(engine, table, branch, f"CREATE BRANCH {identifier(branch)} {version}")
    return branch


def drop_branch(engine: Engine, table: str, branch: str) -> None:
    """Drop a branch if it exists."""
    change = f"DROP BRANCH IF EXISTS {identifier(branch)}"
    _change(engine, table, branch, change, drops=True)


def _change(
    engine: Engine, table: str, branch: str, change: str, *, drops: bool = False
) -> None:
    """Create or drop a branch; after a failure, look whether it happened."""
    statement = f"ALTER TABLE {engine.catalog.sql_name(table)} {change}"
    retry_on_refs(
        lambda: engine.sql(statement),
        done=lambda: (branch in read_history(engine, table).refs) is not drops,
    )


def fast_forward(engine: Engine, table: str, branch: str, write_id: str) -> None:
    """Move main to the branch; fails if another writer published since the branch was created.

    After an unknown outcome, the write id is searched before a retry.
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


def drop_abandoned_branches(engine: Engine, table: str, log: WriteLog) -> None:
    """Drop the branches of dead writers, of this host and old ones; requires the lock."""
    own = {audit_branch(write_id) for write_id in log.unfinished()}
    before = datetime.now(UTC) - AUDIT_KEPT_FOR
    for branch in filter(is_audit, read_history(engine, table).refs):
        begun = begun_at(branch)
        # A live writer on another host whose branch is dropped retries; nothing is lost.
        if branch in own or (begun and begun < before):
            drop_branch(engine, table, branch)
