"""What a release of Iceberg cannot do of what the lakehouse asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse.settings import Settings


@dataclass(frozen=True)
class IcebergRelease:
    """A release; `missing` has, by the step of upkeep that needs it, the procedure or the
    argument of one that is not there.
    """

    version: str
    missing: Mapping[str, str] = field(default_factory=dict, hash=False)
    writes_deletion_vectors: bool = True
    """Else rows that are deleted of a table of format 3 are written as files of their positions,
    which that format does not allow any more.
    """

    def lacks(self, step: str) -> str | None:
        """Say for people what a step of upkeep needs and does not find; None where it is all
        there.
        """
        name = self.missing.get(step)
        return None if name is None else f"Iceberg {self.version} has no {name}"

    def describe(self) -> str:
        """Name the release, and all that is left out or refused because of it."""
        left_out = [f"{step} (no {name})" for step, name in sorted(self.missing.items())]
        parts = [f"upkeep leaves out {', '.join(left_out)}"] if left_out else []
        if not self.writes_deletion_vectors:
            parts.append("tables of format 3 are not written")
        return f"{self.version}: {'; '.join(parts)}" if parts else self.version


_OLDER = {
    "1.7.1": IcebergRelease(
        "1.7.1",
        {"remove_orphans": "prefix_listing", "compute_statistics": "compute_table_stats"},
        writes_deletion_vectors=False,
    )
}


def iceberg_release(version: str) -> IcebergRelease:
    """Return what is known of a release; one that is not known is taken for a newer one."""
    return _OLDER.get(version, IcebergRelease(version))


PINNED = iceberg_release(Settings.iceberg)
"""That whose jars Spark is given where no setting names another."""
