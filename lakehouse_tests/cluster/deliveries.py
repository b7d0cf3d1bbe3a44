"""Two deliveries to an appended and a merged table, and the functions that write them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.functions import col

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules import audit
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.values.write_result import Outcome
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
    "audit": (audit, "count"),
    "compute": (KeptRows, "keep"),
    "compare": (merge_rows, "count"),
    "merge": (stage, "merge"),
}
"""What takes rows, in the order in which they come to it."""
BROUGHT = {
    # One of the two rows that are new.
    "audited": {"between_id": [1, 2]},
    "landed": [["a", 1], ["b", 2], ["b", 4], ["c", 3]],
    "latest": [["a", 1], ["b", 4], ["c", 3]],
}
"""Rows of the tables after both deliveries, and failed and total rows by rule."""
# A rule that tolerates some rows counts them among those that were staged. It reads the column at
# which rows wait.
_RULES = {LANDED.name: [between("id", "a", "b", on_failure="block", fail_above=0.5)]}


@dataclass(frozen=True)
class Deliveries:
    """The tables whose names end in one, and how deliveries come to them."""

    engine: Engine
    name: str

    def bring_first(self) -> None:
        """Bring what is there before anything happens."""
        self._bring("first", FIRST)

    def bring_second(self) -> dict[str, Any]:
        """Bring the second delivery; return the audit results and the rows of both tables."""
        landed = self._bring("second", SECOND[:2])
        return {
            "audited": {
                result.rule.name: [result.failed_rows, result.total_rows]
                for result in landed.results
            },
            "landed": content(self.engine, f"{LANDED.name}_{self.name}", "id", "n"),
            "latest": content(self.engine, f"{LATEST.name}_{self.name}", "id", "n"),
        }

    def _bring(self, file: str, rows: Sequence[tuple[str, str]]) -> Outcome:
        landed, latest = (
            replace(table, name=f"{table.name}_{self.name}", rules=_RULES.get(table.name, ()))
            for table in (LANDED, LATEST)
        )
        delivered = delivery(self.engine, file, rows)
        outcome = write(
            self.engine, landed, lambda: delivered().withColumn("n", col("n").cast("int"))
        )
        write(self.engine, latest, latest_rows, {"landed": incremental(landed.name)})
        return outcome
