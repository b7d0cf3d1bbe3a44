"""What a release of Iceberg cannot do of what the lakehouse asks of it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lakehouse.iceberg.metadata.spark_line import is_spark_3, spark_line
from lakehouse.settings import Settings

Number = tuple[int, int, int]
_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
"""What a version begins with; distributors put theirs behind it, as EMR in `1.7.1-amzn-2`."""
_DELETION_VECTORS_SINCE: Number = (1, 8, 0)
_FORMAT_3_SINCE: Number = (1, 7, 0)
_MOST_FILES_SINCE: Number = (1, 10, 0)
"""`max-files-to-rewrite`, of apache/iceberg#12824, as the notes of that release say."""
_Z_ORDER_SINCE: Mapping[str, tuple[Number, bool]] = MappingProxyType(
    {"date": ((1, 10, 1), False), "timestamp_ntz": ((1, 12, 0), True)}
)
"""By a type of columns, the release since which there is a z-order of it, and whether that is so on
Spark 3.5: of dates on Spark 4 alone (apache/iceberg#14556, and what 1.12 does on 3.5), of moments
without a zone on any (apache/iceberg#15778).
"""
_NEEDED: Mapping[str, tuple[str, Number]] = MappingProxyType(
    {
        "compute_statistics": ("compute_table_stats", (1, 8, 0)),
        "remove_orphans": ("prefix_listing", (1, 10, 0)),
    }
)
"""By the step of upkeep that needs it, the procedure or the argument of one, and the release that
it came with; as the sources of Iceberg's Spark 3.5 have it at the tags of its releases.
`clean_expired_metadata` and `compute_partition_stats` came with 1.10 and `rewrite_table_path` with
1.8: nothing here calls them.
"""


@dataclass(frozen=True)
class IcebergRelease:
    """A release, by its version as Spark or a setting tells it.

    Of one whose number cannot be read nothing is known, and it is asked for nothing that not every
    release has.
    """

    version: str

    @property
    def number(self) -> Number | None:
        """The number that the version begins with, which compares as releases follow each other;
        None where it begins with none.
        """
        found = _NUMBER.match(self.version)
        return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None

    def lacks(self, step: str) -> str | None:
        """Say for people what a step of upkeep needs and does not find; None where it is all
        there.
        """
        if step not in _NEEDED:
            return None
        name, since = _NEEDED[step]
        if self.number is None:
            return (
                f"whether Iceberg {self.version!r} has {name} cannot be told from its version"
            )
        return None if self.number >= since else f"Iceberg {self.version} has no {name}"

    @property
    def limits_rewritten_files(self) -> bool:
        """Whether `rewrite_data_files` can be told how many files it rewrites at most; others fail
        at the option.
        """
        return self.number is not None and self.number >= _MOST_FILES_SINCE

    def lacks_z_order_of(self, columns: Mapping[str, str]) -> str | None:
        """Say for people which columns it has no z-order of; None where it has one of all.

        :param columns: the type of each, as a declaration names it.
        """
        lacking = [
            f"{name} ({declared})"
            for name, declared in columns.items()
            if not self._has_z_order_of(declared)
        ]
        if not lacking:
            return None
        named = ", ".join(lacking)
        return f"Iceberg {self.version} has no z-order of {named} on Spark {spark_line()}"

    def refuses_format_3(self) -> str | None:
        """Say for people why tables of format 3 are not written; None where they are."""
        if self.number is None:
            return (
                f"whether Iceberg {self.version!r} writes deleted rows of format 3 as readers of"
                " that format expect them cannot be told from its version."
            )
        if self.number < _FORMAT_3_SINCE:
            return f"Iceberg {self.version} knows no format 3."
        if self.number < _DELETION_VECTORS_SINCE:
            return (
                f"Iceberg {self.version} would write deleted rows of format 3 as files that"
                " readers of that format refuse."
            )
        return None

    def describe(self) -> str:
        """Name the release, and all that is left out or refused because of it."""
        if self.number is None:
            left_out = ", ".join(sorted(_NEEDED))
            return (
                f"{self.version!r}, of which no number can be read (expected one such as 1.7.1 or"
                f" 1.7.1-amzn-2): upkeep leaves out {left_out}; tables of format 3 are not written"
            )
        parts = []
        if left_out := ", ".join(self._left_out()):
            parts.append(f"upkeep leaves out {left_out}")
        if in_turn := [kind for kind in _Z_ORDER_SINCE if not self._has_z_order_of(kind)]:
            parts.append(
                f"upkeep sorts by columns in turn where a z-order has {' or '.join(in_turn)}"
            )
        if self.refuses_format_3():
            parts.append("tables of format 3 are not written")
        return f"{self.version}: {'; '.join(parts)}" if parts else self.version

    def _has_z_order_of(self, column_type: str) -> bool:
        """Whether it orders rows by the bytes of a type that there is an order of at all."""
        since, on_spark_3 = _Z_ORDER_SINCE.get(column_type, (None, True))
        if since is None:
            return True
        is_new = self.number is not None and self.number >= since
        return is_new and (on_spark_3 or not is_spark_3())

    def _left_out(self) -> Iterator[str]:
        for step, (name, _) in sorted(_NEEDED.items()):
            if self.lacks(step):
                yield f"{step} (no {name})"


PINNED = IcebergRelease(Settings.iceberg)
"""That whose jars Spark is given where no setting names another."""
