"""Locations in the code of a project, such as `lakehouse/assets/silver/fruits.py:44`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from lakehouse.orchestration.sql_function import SqlFunction


def place_of_function(function: Callable[..., Any]) -> str:
    """Return where a function or query is defined; empty for a function without a file."""
    if isinstance(function, SqlFunction):
        return function.place
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    return file_place(code.co_filename, function.__module__, code.co_firstlineno)


def place_of_error(function: Callable[..., Any], error: BaseException) -> str | None:
    """Return the innermost line of an error in a function's file; None if there is none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    lines = [
        line for _, file, line in frames_of(error.__traceback__) if file == code.co_filename
    ]
    return file_place(code.co_filename, function.__module__, lines[-1]) if lines else None


def file_place(file: str, module: str, line: int) -> str:
    """Return the path of a module's file, relative to the root of its packages, and a line."""
    path = Path(file)
    is_package = path.name == "__init__.py"
    depth = module.count(".") + (2 if is_package else 1)
    return f"{'/'.join(path.parts[-depth:])}:{line}"


def frames_of(trace: TracebackType | None) -> list[tuple[str, str, int]]:
    """Return the module, file and line of each frame of a traceback, innermost last."""
    frames = []
    while trace is not None:
        frame = trace.tb_frame
        frames.append(
            (frame.f_globals.get("__name__", ""), frame.f_code.co_filename, trace.tb_lineno)
        )
        trace = trace.tb_next
    return frames
