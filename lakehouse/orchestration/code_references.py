"""Source location of a table's function, for the link in the Dagster UI."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import dagster as dg

from lakehouse.orchestration.sql_function import SqlFunction


def code_references(function: Callable[..., Any]) -> dict[str, Any]:
    """Return asset metadata with the location of a function or query; empty without a file.

    Dagster's own `with_source_code_references` would reference our asset factory.
    """
    if isinstance(function, SqlFunction):
        file, line = str(function.file), 1
    elif code := getattr(inspect.unwrap(function), "__code__", None):
        file, line = code.co_filename, code.co_firstlineno
    else:
        return {}
    with warnings.catch_warnings():
        # Without this, each start warns that they are beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reference = dg.LocalFileCodeReference(file_path=file, line_number=line)
        value = dg.CodeReferencesMetadataValue(code_references=[reference])
    return {"dagster/code_references": value}
