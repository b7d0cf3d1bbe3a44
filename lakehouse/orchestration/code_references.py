"""Where the function of a table stands, as the UI opens it in an editor."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import dagster as dg

from lakehouse.orchestration.sql_function import SqlFunction


def code_references(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the metadata of an asset that leads to a function, or to the query in a file that it
    is; none of one that Python did not compile from a file.

    Dagster's own `with_source_code_references` leads to what makes the assets of all tables.
    """
    if isinstance(function, SqlFunction):
        file, line = str(function.file), 1
    elif code := getattr(inspect.unwrap(function), "__code__", None):
        file, line = code.co_filename, code.co_firstlineno
    else:
        return {}
    with warnings.catch_warnings():
        # Each start would say that they are beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reference = dg.LocalFileCodeReference(file_path=file, line_number=line)
        value = dg.CodeReferencesMetadataValue(code_references=[reference])
    return {"dagster/code_references": value}
