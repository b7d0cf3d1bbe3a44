"""What became of one place, as a value."""

from dataclasses import dataclass
from typing import Literal

ERASED = "[erased]"
"""What stands where a value stood."""

Outcome = Literal["erased", "removed", "kept", "busy", "not reached"]
"""`erased`: values were overwritten. `removed`: the files are gone. `kept`: what is there is
shared with others. `busy`: another process holds it, and the next call does it. `not reached`:
somebody else has to.
"""


@dataclass(frozen=True)
class ScrubbedPlace:
    """A place in which a person was found, or which could not be looked through.

    Of a dry run, `erased` and `removed` say what would be.
    """

    place: str
    """Its path from the home, or in the bucket, or what it is where it lies elsewhere; no value
    stands in it.
    """
    outcome: Outcome
    values: int = 0
    """How many values were overwritten."""
    shared: int = 0
    """How many were left, since somebody else has them too."""
    files: int = 0
    """How many files were removed, or could not be looked through."""
    why: str = ""
    """Why it is as it is, where something is left to do."""
    owner: str = ""
    """Whose it is to do that."""

    @property
    def is_done(self) -> bool:
        """Whether nothing of the person is left there, as far as can be known."""
        return self.outcome in ("erased", "removed", "kept")
