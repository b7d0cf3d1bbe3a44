"""Every error that the lakehouse raises on purpose.

    LakehouseError
    ├── UsageError              the command or the call is wrong (exit code 2)
    │   └── SettingsError       a setting in the environment is wrong
    ├── DeclarationError        a table, rule or feed is declared in a way that cannot work
    ├── SetupError              Java, the jars or the home are missing or damaged
    ├── CatalogDamaged          the catalog is missing beside its tables, or cannot be read
    ├── TableUnreadable         a table, or what it is, cannot be read
    │   ├── TableDamaged        a file that a table needs is missing, or cannot be read
    │   ├── TypeUnsupported     a column of it has a type that only Spark reads
    │   └── FilesUnsupported    a file of it is of a kind that only Spark reads
    ├── TableNotFound           the catalog has no such table
    ├── SnapshotNotFound        the table has no such snapshot, tag, branch or moment
    ├── FrameMismatch           a frame does not have the columns that its table declares
    ├── ComputeFailed           what computes a table raised, or Spark did as it computed it
    ├── JobFailed               a job of AWS ended, and did not say what came of its table
    ├── SparkEnded              Spark ended, or ran out of memory, while it worked
    ├── EvolutionRefused        a declared change would lose data or break readers
    ├── PendingChanges          a declared change waits for `lakehouse apply`
    ├── WriteConflict           other writers kept winning until the limit was reached
    ├── QuarantineFailed        refused rows could not be kept, so the others were not published
    ├── CommitUnknown           a commit may or may not have happened, and could not be looked up
    ├── TableBusy               the table's lock was held longer than the caller would wait
    ├── UpkeepFailed            a step of upkeep failed, or did not come out as it should
    ├── ErasureFailed           people could not be erased, or it could not be proved
    └── FileRejected            a delivered file is not what its feed declares

Each one names the thing, what was found, what was expected, and the next step.
"""


class LakehouseError(Exception):
    """The work failed for a reason that the message explains; `next_step` says what to do about
    it.
    """

    exit_code = 1

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.next_step = next_step

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.next_step}" if self.next_step else message


class UsageError(LakehouseError):
    """The command or the call is wrong."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting in the environment is wrong."""


class DeclarationError(LakehouseError):
    """A table, rule or feed is declared in a way that cannot work."""


class SetupError(LakehouseError):
    """Java, the jars or the home are missing or damaged."""


class CatalogDamaged(LakehouseError):
    """The catalog is missing beside its tables, or cannot be read."""


class TableUnreadable(LakehouseError):
    """A table, or what it is, cannot be read."""


class TableDamaged(TableUnreadable):
    """A file that a table needs is missing, or cannot be read."""


class TypeUnsupported(TableUnreadable):
    """A column of it has a type that only Spark reads.

    Nothing of the table is damaged.
    """


class FilesUnsupported(TableUnreadable):
    """A file of it is of a kind that only Spark reads.

    Nothing of the table is damaged.
    """


class TableNotFound(LakehouseError):
    """The catalog has no such table."""


class SnapshotNotFound(LakehouseError):
    """The table has no such snapshot, tag, branch or moment."""


class FrameMismatch(LakehouseError):
    """A frame does not have the columns that its table declares."""


class ComputeFailed(LakehouseError):
    """What computes a table raised, or Spark did as it computed it."""


class JobFailed(LakehouseError):
    """A job of AWS ended, and did not say what came of its table."""


class SparkEnded(LakehouseError):
    """Spark ended, or ran out of memory, while it worked."""


class EvolutionRefused(LakehouseError):
    """A declared change would lose data or break readers."""


class PendingChanges(LakehouseError):
    """A declared change waits for `lakehouse apply`."""


class WriteConflict(LakehouseError):
    """Other writers kept winning until the limit was reached."""


class QuarantineFailed(LakehouseError):
    """Refused rows could not be kept, so the others were not published."""


class CommitUnknown(LakehouseError):
    """A commit may or may not have happened, and could not be looked up."""


class TableBusy(LakehouseError):
    """The table's lock was held longer than the caller would wait."""


class UpkeepFailed(LakehouseError):
    """A step of upkeep failed, or did not come out as it should."""


class ErasureFailed(LakehouseError):
    """People could not be erased, or it could not be proved."""


class FileRejected(LakehouseError):
    """A delivered file is not what its feed declares.

    None of the texts holds a value of a row.
    """

    def __init__(self, reason: str, *, found: str, expected: str, next_step: str = "") -> None:
        super().__init__(f"{reason}: found {found}; expected {expected}.", next_step=next_step)
        self.reason = reason
        self.found = found
        self.expected = expected
