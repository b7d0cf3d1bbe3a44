"""The rows of a delivery between staging and bronze: all of them land, or none."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.delivery import Delivery
from lakehouse.ingestion.staged_frame import is_shared, read_staged_rows
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LandingRows:
    """The staged rows as one write lands them, verified to be complete.

    If other processes can add or remove staged files, the number of landed rows is compared
    with the number of staged rows before publishing, using Iceberg's own count. A compute
    function or rules may change that number. Then a separate job counts the staged rows first.

    :param added: undeclared columns that bronze got from earlier files.
    """

    def __init__(
        self,
        spark: "SparkSession",
        delivery: Delivery,
        table: IcebergTable,
        compute: "Callable[[DataFrame], DataFrame]",
        added: Sequence[str],
    ) -> None:
        self._spark = spark
        self._delivery = delivery
        self._table = table
        self._compute = compute
        self._added = added
        self._counts_landed = False

    def rows(self) -> "DataFrame":
        """Return the rows for bronze.

        :raises LakehouseError: if Spark reads more or fewer rows than were staged.
        """
        staged = read_staged_rows(self._spark, self._delivery, added=self._added)
        rows = self._compute(staged)
        is_as_staged = rows is staged and not self._table.rules
        is_verified = is_shared(self._delivery)
        self._counts_landed = is_verified and is_as_staged
        if is_verified and not is_as_staged:
            self._require(staged.count(), self._delivery.rows)
        return rows

    def check_added(self, rows: int, landed: Collection[tuple[Any, ...]]) -> None:
        """Check that the written row count equals the staged rows of files that are new in
        bronze.

        :param landed: source and hash of the files that bronze already had.
        :raises LakehouseError: if there are more or fewer.
        """
        if not self._counts_landed:
            return
        new = [
            file
            for file in self._delivery.files
            if (file.source_file, file.sha256) not in landed
        ]
        self._require(rows, sum(file.rows for file in new))

    def _require(self, rows: int, expected: int) -> None:
        if rows == expected:
            return
        ingest = self._delivery.ingest
        raise LakehouseError(
            f"Spark reads {rows:,} rows of feed {ingest.feed.name} in {ingest.rows.uri}; expected"
            f" the {expected:,} that were staged there.",
            next_step="Run the ingest again; the files wait in the inbox.",
        )
