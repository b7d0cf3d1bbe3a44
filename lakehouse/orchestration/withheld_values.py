"""Withholds error texts of tables with personal data: only their kind is shown.

Dagster stores the text of errors and their causes in the event log, which all users of the UI
can read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from lakehouse.errors import ComputeFailed, LakehouseError, SparkEnded
from lakehouse.iceberg.frames.spark_errors import condition_of, spark_exit_explanation
from lakehouse.tables.table import IcebergTable

_LONGEST = 300
_WITHOUT_DATA = frozenset({"AnalysisException", "ParseException"})
"""Spark errors that occur before it reads rows."""
_OF_THE_CODE = (NameError, AttributeError, ImportError)


@contextmanager
def values_withheld(table: IcebergTable) -> Iterator[None]:
    """Replace errors whose text can contain rows of a table with personal data.

    :raises ComputeFailed: replaces errors that this package did not raise.
    :raises SparkEnded: the Spark process exited, and its error text does not state the cause.
    """
    try:
        yield
    except (dg.DagsterError, dg.Failure):
        raise
    except LakehouseError as error:
        if table.has_personal_data:
            raise error from None
        raise
    except Exception as error:
        if explanation := spark_exit_explanation(error):
            raise SparkEnded(f"{table.name} was not computed: {explanation}") from None
        if not table.has_personal_data:
            raise
        raise ComputeFailed(
            f"{table.name} could not be computed: {cause_without_data(error)}.",
            next_step=(
                "Its text may quote rows of people, and is kept nowhere; `lakehouse sql` shows"
                " the inputs' rows."
            ),
        ) from None


def cause_without_data(error: BaseException) -> str:
    """Return the kind of an error, with its text if that cannot contain data."""
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        file = f": {error.filename}" if error.filename else ""
        return f"{kind}: {os.strerror(error.errno)}{file}"
    if kind in _WITHOUT_DATA or isinstance(error, _OF_THE_CODE):
        lines = str(error).strip().splitlines()
        return f"{kind}: {lines[0][:_LONGEST]}" if lines else kind
    condition = condition_of(error)
    return f"{kind} [{condition}]" if condition else kind
