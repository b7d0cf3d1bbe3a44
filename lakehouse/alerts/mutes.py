"""Mutes of tables: their alerts are recorded, and sent at the end if still open."""

from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Mute:
    """Who muted a table, or a pattern such as `silver.*`, until when and why."""

    table: str
    until: datetime
    by: str
    why: str
    at: datetime

    def covers(self, table: str) -> bool:
        """Whether it applies to a table; only `*` applies to incidents without a table."""
        return fnmatchcase(table, self.table)

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"until {self.until.isoformat(timespec='minutes')} by {self.by}{why}"


def mute_command(table: str) -> str:
    """Return the command in alerts that mutes a table while its cause is removed."""
    return f"lakehouse mute {table} --until 2h"
