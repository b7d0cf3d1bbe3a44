"""The result of an erasure in one place outside of tables and delivered files."""

from dataclasses import dataclass
from typing import Literal

ERASED = "[erased]"
"""Replaces a value."""

Outcome = Literal["erased", "removed", "kept", "busy", "not reached"]
"""`erased`: values were overwritten. `removed`: files were deleted. `busy`: another process uses
it, and the next call does the rest. `not reached`: its operator has to erase it. `kept`: only in
records of earlier versions.
"""


@dataclass(frozen=True)
class ScrubbedPlace:
    """A place that contained a person, or that could not be searched.

    In a dry run, `erased` and `removed` are what would be done.
    """

    place: str
    """Its path from the home or in the bucket, or a description; it contains no value."""
    outcome: Outcome
    values: int = 0
    """The number of overwritten values."""
    files: int = 0
    """The number of files that were removed, or could not be searched."""
    why: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the place contains nothing of the person any more, as far as is known."""
        return self.outcome in ("erased", "removed", "kept")
