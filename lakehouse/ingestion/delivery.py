"""What one ingest collected from its feed's inbox; values without behaviour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.ingestion.ingest import Ingest
from lakehouse.ingestion.staging import StagedFile
from lakehouse.tables.escaping import quoted, shown


@dataclass(frozen=True)
class RejectedFile:
    """A file that is not what its feed declares, and where it now is; no text of it holds a
    value of a row.
    """

    feed: str
    source_file: str
    sha256: str
    why: FileRejected
    rejected_at: datetime
    key: str

    def __str__(self) -> str:
        return (
            f"{shown(self.source_file)} was rejected: {self.why} It is kept as"
            f" {shown(self.key)}."
        )


@dataclass(frozen=True)
class Delivery:
    """The files that one ingest collected, in their order, staged to be landed by one append.

    `unsettled` are the keys that were still being written, or changed while they were read: the
    next ingest collects them. `waiting` counts what is beyond the feed's `max_files_per_run`.
    `not_moved` are the errors of files that are to be rejected, and stay in the inbox.
    """

    ingest: Ingest
    files: Sequence[StagedFile] = ()
    rejected: Sequence[RejectedFile] = ()
    unsettled: Sequence[str] = ()
    not_moved: Sequence[LakehouseError] = ()
    waiting: int = 0
    remark: str = ""
    """Why the driver read files, all or some, that executors should have."""
    by_executors: bool = False
    """Whether executors were given files: one that was given up may still stage rows."""
    still_rejected: Sequence[StagedFile] = ()
    """Files in the inbox that a person rejected, and that are what they were then: they land no
    row.
    """

    @property
    def arriving(self) -> list[tuple[str, str]]:
        """(`_source_file`, `_source_sha256`) of each file: what the append is made once by."""
        return [(file.source_file, file.sha256) for file in self.files]

    @property
    def rows(self) -> int:
        """Rows of all collected files, before any cleaning (`nr_rows`); those that bronze already
        has are among them.
        """
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Size of all collected files as delivered."""
        return sum(file.stored.size_bytes for file in self.files)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """Columns that a file brought and the feed does not declare, in the order of their
        coming.
        """
        return tuple(dict.fromkeys(name for file in self.files for name in file.added_columns))

    @property
    def left_out_rows(self) -> int:
        """Rows of people who were erased, which the files had and which do not land."""
        return sum(file.left_out_rows for file in self.files)

    @property
    def warnings(self) -> list[str]:
        """One line for each file that brought columns which the feed does not declare, one for
        each with rows of people who were erased, one for each that stays rejected, and one where
        the driver read files that executors should have.
        """
        added = [self._added(file) for file in self.files if file.added_columns]
        left_out = [_left_out(file) for file in self.files if file.left_out_rows]
        stays = [self._stays_rejected(file) for file in self.still_rejected]
        return [*added, *left_out, *stays, *filter(None, [self.remark])]

    def _added(self, file: StagedFile) -> str:
        return (
            f"{shown(file.source_file)} brings {', '.join(map(quoted, file.added_columns))},"
            f" which feed {self.ingest.feed.name} does not declare; added to"
            f" {self.ingest.feed.table} as a nullable string. Declare it to give it a meaning."
        )

    def _stays_rejected(self, file: StagedFile) -> str:
        return (
            f"{shown(file.source_file)} is as it was when a person rejected it, and lands no row."
            " If its rows are to count after all, name it: `lakehouse ingest"
            f" {self.ingest.feed.name} --path …`."
        )


def _left_out(file: StagedFile) -> str:
    rows = f"{file.left_out_rows:,} row" + "s" * (file.left_out_rows != 1)
    return (
        f"{shown(file.source_file)} was delivered with {rows} of people who were erased: left"
        " out, here and in the file."
    )


@dataclass(frozen=True)
class Archived:
    """What became of a delivery's files after bronze had them.

    `keys` are where they now are. `changed` are those in the inbox that were changed
    meanwhile: the next ingest collects them as they are now.
    """

    keys: Sequence[str] = ()
    changed: Sequence[str] = ()
