"""Appending to the chain from processes of their own."""

from pathlib import Path

from lakehouse.assets.audit.gdpr_actions import TABLE
from lakehouse.privacy.audit_chain import AuditedAction, append_actions
from lakehouse.settings import Settings
from lakehouse_tests.processes import engine_of_process, meet


def append_some(name: str, count: int, lock_dir: str | None, meeting: str) -> None:
    """Append some actions, one commit each, together with another process."""
    engine, settings = engine_of_process(lock_dir=lock_dir), Settings.from_env()
    meet(Path(meeting), 2)
    for number in range(count):
        action = AuditedAction("verified", f"{name}-{number}", "me")
        append_actions(settings, engine, TABLE, [action], f"{name}-{number}")
