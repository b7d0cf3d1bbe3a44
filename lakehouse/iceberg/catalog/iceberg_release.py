"""Features that a release of Iceberg lacks, and the version line of Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from lakehouse.settings import Settings


def spark_line() -> str:
    """Return the version line of the installed PySpark, such as `4.1`; empty without one."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return ""


def is_spark_3() -> bool:
    """Whether Spark is older than 4; some of its calls have other arguments."""
    return spark_line().startswith("3.")


Number = tuple[int, int, int]
_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
"""The number of a version; distributors append their own, such as EMR's `1.7.1-amzn-2`."""
_DELETION_VECTORS_SINCE: Number = (1, 8, 0)
_FORMAT_3_SINCE: Number = (1, 7, 0)
_MOST_FILES_SINCE: Number = (1, 10, 0)
"""`max-files-to-rewrite`, added by apache/iceberg#12824; see the notes of that release."""
_Z_ORDER_SINCE: Mapping[str, tuple[Number, bool]] = MappingProxyType(
    {"date": ((1, 10, 1), False), "timestamp_ntz": ((1, 12, 0), True)}
)
"""By column type: the first release with a z-order, and whether Spark 3.5 has it too.

Dates: Spark 4 only (apache/iceberg#14556; verified with 1.12 on 3.5). Timestamps without a
zone: both (apache/iceberg#15778).
"""
_PREFIX_LISTING_SINCE: Number = (1, 10, 0)
"""Argument of `remove_orphan_files`, from the tagged Spark 3.5 sources of Iceberg."""


@dataclass(frozen=True)
class IcebergRelease:
    """An Iceberg release; without a number, only features of all releases are used."""

    version: str

    @property
    def number(self) -> Number | None:
        """The leading number of the version, for comparisons; None if it has none."""
        found = _NUMBER.match(self.version)
        return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None

    def lacks_prefix_listing(self) -> str | None:
        """Return why upkeep cannot remove orphans; None if it can."""
        name = "prefix_listing"
        if self.number is None:
            return f"the version {self.version!r} does not show whether Iceberg has {name}"
        has_it = self.number >= _PREFIX_LISTING_SINCE
        return None if has_it else f"Iceberg {self.version} has no {name}"

    @property
    def limits_rewritten_files(self) -> bool:
        """Whether `rewrite_data_files` supports a limit on rewritten files."""
        return self.number is not None and self.number >= _MOST_FILES_SINCE

    def lacks_z_order_of(self, columns: Mapping[str, str]) -> str | None:
        """Return a message about columns without a z-order, by type; None if there are none."""
        lacking = [
            f"{name} ({declared})"
            for name, declared in columns.items()
            if not self._has_z_order_of(declared)
        ]
        if not lacking:
            return None
        named = ", ".join(lacking)
        return f"Iceberg {self.version} has no z-order of {named} on Spark {spark_line()}"

    def rejects_format_3(self) -> str | None:
        """Return the reason why format 3 tables are not written; None if they are."""
        if self.number is None:
            return (
                f"the version {self.version!r} does not show whether Iceberg writes deletion"
                " vectors for format 3."
            )
        if self.number < _FORMAT_3_SINCE:
            return f"Iceberg {self.version} does not support format 3."
        if self.number < _DELETION_VECTORS_SINCE:
            return (
                f"Iceberg {self.version} would write deleted rows of format 3 as files that"
                " readers of that format reject."
            )
        return None

    def describe(self) -> str:
        """Return the release with everything that is skipped or rejected because of it."""
        if self.number is None:
            return (
                f"{self.version!r}, of which no number can be read (expected one such as 1.7.1 or"
                " 1.7.1-amzn-2): upkeep leaves out remove_orphans; tables of format 3 are not"
                " written"
            )
        parts = []
        if self.lacks_prefix_listing():
            parts.append("upkeep leaves out remove_orphans (no prefix_listing)")
        if in_turn := [kind for kind in _Z_ORDER_SINCE if not self._has_z_order_of(kind)]:
            parts.append(
                f"upkeep sorts by columns in turn where a z-order has {' or '.join(in_turn)}"
            )
        if self.rejects_format_3():
            parts.append("tables of format 3 are not written")
        return f"{self.version}: {'; '.join(parts)}" if parts else self.version

    def _has_z_order_of(self, column_type: str) -> bool:
        """Whether rows can be z-ordered by a column type; True for types without a restriction."""
        since, on_spark_3 = _Z_ORDER_SINCE.get(column_type, (None, True))
        if since is None:
            return True
        is_new = self.number is not None and self.number >= since
        return is_new and (on_spark_3 or not is_spark_3())


PINNED = IcebergRelease(Settings.iceberg)
"""The release of the default jars."""
