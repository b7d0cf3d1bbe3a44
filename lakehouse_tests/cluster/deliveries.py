"""Two deliveries to two tables of a test's own, one that is appended to and one that merges; and
what their writes do with rows, by the function of the engine that does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.functions import col

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.write import merge_rows, stage
from lakehouse.iceberg.write.kept_rows import KeptRows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse_tests.iceberg.declarations import content
from lakehouse_tests.iceberg.kills import (
    FIRST,
    LANDED,
    LATEST,
    SECOND,
    delivery,
    latest_rows,
)

WORK: dict[str, tuple[Any, str]] = {
    "append": (stage, "append"),
    "compute": (KeptRows, "keep"),
    "audit": (merge_rows, "count"),
    "merge": (stage, "merge"),
}
"""What takes rows, in the order in which they come to it."""
BROUGHT = {
    "landed": [["a", 1], ["b", 2], ["b", 4], ["c", 3]],
    "latest": [["a", 1], ["b", 4], ["c", 3]],
}
"""What the tables hold once both deliveries were brought, each once."""


@dataclass(frozen=True)
class Deliveries:
    """The tables whose names end in one, and how deliveries come to them."""

    engine: Engine
    name: str

    def bring_first(self) -> None:
        """Bring what is there before anything happens."""
        self._bring("first", FIRST)

    def bring_second(self) -> None:
        """Bring what changes a row and adds one."""
        self._bring("second", SECOND[:2])

    def content(self) -> dict[str, Any]:
        """Return the rows of both tables."""
        return {
            "landed": content(self.engine, f"{LANDED.name}_{self.name}", "id", "n"),
            "latest": content(self.engine, f"{LATEST.name}_{self.name}", "id", "n"),
        }

    def _bring(self, file: str, rows: Sequence[tuple[str, str]]) -> None:
        landed, latest = (
            replace(table, name=f"{table.name}_{self.name}", rules=())
            for table in (LANDED, LATEST)
        )
        delivered = delivery(self.engine, file, rows)
        write(self.engine, landed, lambda: delivered().withColumn("n", col("n").cast("int")))
        write(self.engine, latest, latest_rows, {"landed": incremental(landed.name)})
