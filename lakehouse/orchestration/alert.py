"""The message that goes to people of a thing that broke, or is over, as a value."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from lakehouse.tables.escaping import visible

Severity = Literal["error", "warn"]
Saying = Literal["opened", "grew", "repeated", "recovered", "summary", "test"]


@dataclass(frozen=True)
class Alert:
    """One message. `key` names the thing that broke, and is the same when it breaks again, and
    when that is over.

    Title and lines are one line each, in which what cannot be seen is written as an escape.
    """

    alert_id: str
    """Equal for the same message also where it is sent twice, so that a receiver can tell."""
    key: str
    saying: Saying
    severity: Severity
    at: datetime
    title: str
    lines: tuple[str, ...] = ()
    table: str = ""
    owner: str = ""
    run_id: str = ""
    muted: str = ""
    """Who muted it and why; it is recorded then, and sent to nobody."""
    kind: str = ""
    """What it is of: a check, rows in quarantine, a run that failed. Nothing of a summary or a
    test.
    """
    brief: str = ""
    """How bad it is or of what it came, in a few words."""
    lakehouse: str = ""
    """Which lakehouse speaks; in the record alone, other places get it beside the message.
    """

    def __post_init__(self) -> None:
        # Names of files and values of rows are others' texts: none steers a terminal, or makes
        # a line of its own.
        for name in ("title", "muted", "brief"):
            object.__setattr__(self, name, visible(getattr(self, name)))
        object.__setattr__(self, "lines", tuple(map(visible, self.lines)))

    @property
    def text(self) -> str:
        """What stands below the title."""
        return "\n".join([*self.lines, f"Alert {self.alert_id}"])

    def to_json(self) -> dict[str, Any]:
        """Return it as a piece of JSON."""
        return {**self.__dict__, "at": self.at.isoformat(), "lines": list(self.lines)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Alert":
        """Read what `to_json` wrote."""
        return cls(
            **{
                **record,
                "at": datetime.fromisoformat(record["at"]),
                "lines": tuple(record["lines"]),
            }
        )


def alert_id(*parts: object) -> str:
    """Return sixteen hex digits that stand for a message."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
