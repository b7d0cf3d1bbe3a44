"""How a table is kept healthy: what its files and snapshots shall be, and how long what is old
stays.
"""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal

from lakehouse.errors import DeclarationError

KeptBy = Literal["lakehouse", "glue", "nobody"]


@dataclass(frozen=True)
class Upkeep:
    """The upkeep policy of a layer or of a table.

    A part that is left out (None) is taken from the layer's policy, and there from `DEFAULTS`.

    `keep_snapshots_for` and `keep_at_least` say which snapshots time travel can rely on.
    `orphans_after` is the age from which a file that no metadata names is removed; never less
    than a day, since a running write has such files. `refused_for` is how long the branch of a
    refused write stays. `metadata_files` is how many old metadata.json files are kept.
    `sort_by` sorts files that are rewritten, by these columns in turn or, where `z_order`, by
    all at once; left out, files are joined as they are (bin-pack).
    `kept_by` says who does the work: on AWS, Glue's table optimizers may, and then the
    lakehouse does not.
    """

    keep_snapshots_for: timedelta | None = None
    keep_at_least: int | None = None
    orphans_after: timedelta | None = None
    refused_for: timedelta | None = None
    metadata_files: int | None = None
    sort_by: tuple[str, ...] | None = None
    z_order: bool | None = None
    kept_by: KeptBy | None = None

    def __post_init__(self) -> None:
        if self.orphans_after is not None and self.orphans_after < timedelta(days=1):
            raise DeclarationError(
                f"Upkeep(orphans_after={self.orphans_after}) would remove files of writes that"
                " are still running; expected a day or more."
            )
        if self.keep_at_least is not None and self.keep_at_least < 1:
            raise DeclarationError(
                f"Upkeep(keep_at_least={self.keep_at_least}) would keep no snapshot; expected 1"
                " or more."
            )

    def over(self, wider: "Upkeep") -> "Upkeep":
        """Return this policy with what it leaves out taken from a wider one."""
        inherited: dict[str, Any] = {}
        for part in fields(self):
            if getattr(self, part.name) is None:
                inherited[part.name] = getattr(wider, part.name)
        return replace(self, **inherited)


DEFAULTS = Upkeep(
    keep_snapshots_for=timedelta(days=30),
    keep_at_least=5,
    orphans_after=timedelta(days=7),
    refused_for=timedelta(days=7),
    metadata_files=100,
    sort_by=(),
    z_order=False,
    kept_by="lakehouse",
)
"""What a table is kept by where neither it nor its layer says otherwise."""
