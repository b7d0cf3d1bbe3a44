"""Errors of what computes a table about people: told by kind and place, without a text that may
quote a row.

Dagster keeps the text of an error, and of what it came of, in its event log, and shows it to
whoever opens the UI.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb

import dagster as dg

from lakehouse.errors import ComputeFailed, LakehouseError, SparkEnded
from lakehouse.iceberg.metadata.error_explanations import spark_ended
from lakehouse.iceberg.metadata.spark_errors import condition_of
from lakehouse.tables.table import IcebergTable

_LONGEST = 300
_WITHOUT_DATA = frozenset({"AnalysisException", "ParseException"})
"""Errors of Spark that come before it has read a row."""
_OF_THE_CODE = (NameError, AttributeError, ImportError)
_LAKEHOUSE = Path(__file__).parents[1]
_NOT_OF_A_TABLE = ("site-packages", "dist-packages")


@contextmanager
def values_withheld(table: IcebergTable) -> Iterator[None]:
    """Let no error out whose text may quote a row of a table that holds personal data.

    :raises ComputeFailed: in place of an error that is not the lakehouse's own.
    :raises SparkEnded: when the error came of the end of Spark, whose stacks and texts say
        nothing of why.
    """
    try:
        yield
    except (dg.DagsterError, dg.Failure):
        raise
    except LakehouseError as error:
        if table.holds_personal_data:
            raise error from None
        raise
    except Exception as error:
        if ended := spark_ended(error):
            raise SparkEnded(f"{table.name} was not computed: {ended}") from None
        if not table.holds_personal_data:
            raise
        raise ComputeFailed(
            f"{table.name} could not be computed: {cause_without_data(error)}{_place(error)}.",
            next_step=(
                "Its text may quote rows of people, and is kept nowhere; `lakehouse sql` shows"
                " the inputs' rows."
            ),
        ) from None


def cause_without_data(error: BaseException) -> str:
    """Return the kind of an error, with its text where no data can be in that."""
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        file = f": {error.filename}" if error.filename else ""
        return f"{kind}: {os.strerror(error.errno)}{file}"
    if kind in _WITHOUT_DATA or isinstance(error, _OF_THE_CODE):
        lines = str(error).strip().splitlines()
        return f"{kind}: {lines[0][:_LONGEST]}" if lines else kind
    condition = condition_of(error)
    return f"{kind} [{condition}]" if condition else kind


def _place(error: BaseException) -> str:
    """Say where the code of the table raised; nothing where only the lakehouse's own did, or a
    library's.
    """
    frames = [
        frame for frame in extract_tb(error.__traceback__) if _is_of_the_table(frame.filename)
    ]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _is_of_the_table(file: str) -> bool:
    path = Path(file)
    if (
        file.startswith("<")
        or path.is_relative_to(get_path("stdlib"))
        or {*_NOT_OF_A_TABLE} & {*path.parts}
    ):
        return False
    return path.is_relative_to(_LAKEHOUSE / "assets") or not path.is_relative_to(_LAKEHOUSE)
