"""All exceptions that the lakehouse raises deliberately.

    LakehouseError
    ├── UsageError              the command or the call is wrong (exit code 2)
    │   └── SettingsError       a setting in the environment is wrong
    ├── DeclarationError        the declaration of a table, rule or feed is invalid
    ├── SetupError              Java, the jars or the home are missing or damaged
    ├── CatalogDamaged          the catalog of existing tables is missing or unreadable
    ├── TableUnreadable         a table or its metadata cannot be read
    │   ├── TableDamaged        a file of a table is missing or unreadable
    │   ├── TypeUnsupported     a column has a type that only Spark reads
    │   └── FilesUnsupported    a file has a format that only Spark reads
    ├── TableNotFound           the catalog has no such table
    ├── SnapshotNotFound        the table has no such snapshot, tag, branch or timestamp
    ├── FrameMismatch           a DataFrame lacks the columns that its table declares
    ├── ComputeFailed           the function of a table raised, or Spark did while computing it
    ├── JobFailed               an AWS job ended without reporting an outcome
    ├── SparkEnded              Spark exited or ran out of memory
    ├── EvolutionRefused        a declared change would lose data or break readers
    ├── PendingChanges          a declared change waits for `lakehouse apply`
    ├── WriteConflict           other writers won until the limit of retries was reached
    ├── QuarantineFailed        quarantined rows were not stored, so nothing was published
    ├── CommitUnknown           the state of a commit is unknown and cannot be looked up
    ├── TableBusy               the table's lock was not released in time
    ├── UpkeepFailed            an upkeep step failed or had an unexpected result
    ├── ErasureFailed           an erasure failed or could not be verified
    └── FileRejected            a delivered file does not match its feed declaration

Each message states the object, the actual value, the expected value and the next step.
"""


class LakehouseError(Exception):
    """An expected failure with an explanation; `next_step` states what to do."""

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
    """The declaration of a table, rule or feed is invalid."""


class SetupError(LakehouseError):
    """Java, the jars or the home are missing or damaged."""


class CatalogDamaged(LakehouseError):
    """The catalog of existing tables is missing or unreadable."""


class TableUnreadable(LakehouseError):
    """A table or its metadata cannot be read."""


class TableDamaged(TableUnreadable):
    """A file of a table is missing or unreadable."""


class TypeUnsupported(TableUnreadable):
    """A column has a type that only Spark reads."""


class FilesUnsupported(TableUnreadable):
    """A file has a format that only Spark reads."""


class TableNotFound(LakehouseError):
    """The catalog has no such table."""


class SnapshotNotFound(LakehouseError):
    """The table has no such snapshot, tag, branch or timestamp."""


class FrameMismatch(LakehouseError):
    """A DataFrame lacks the columns that its table declares."""


class ComputeFailed(LakehouseError):
    """The function of a table raised, or Spark did while computing it."""


class JobFailed(LakehouseError):
    """An AWS job ended without reporting an outcome."""


class SparkEnded(LakehouseError):
    """Spark exited or ran out of memory."""


class EvolutionRefused(LakehouseError):
    """A declared change would lose data or break readers."""


class PendingChanges(LakehouseError):
    """A declared change waits for `lakehouse apply`."""


class WriteConflict(LakehouseError):
    """Other writers won until the limit of retries was reached."""


class QuarantineFailed(LakehouseError):
    """Quarantined rows were not stored, so nothing was published."""


class CommitUnknown(LakehouseError):
    """The state of a commit is unknown and cannot be looked up."""


class TableBusy(LakehouseError):
    """The table's lock was not released in time."""


class UpkeepFailed(LakehouseError):
    """An upkeep step failed or had an unexpected result."""


class ErasureFailed(LakehouseError):
    """An erasure failed or could not be verified."""


class FileRejected(LakehouseError):
    """A delivered file does not match its feed declaration."""

    def __init__(self, reason: str, *, found: str, expected: str, next_step: str = "") -> None:
        super().__init__(f"{reason}: found {found}; expected {expected}.", next_step=next_step)
        self.reason = reason
        self.found = found
        self.expected = expected
