"""Where something stands in the code of a project, as people find it:
`lakehouse/assets/silver/fruits.py:44`.
"""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from lakehouse.orchestration.sql_function import SqlFunction


def place_of_function(function: Callable[..., Any]) -> str:
    """Return where a function is defined, or the query that stands for one; nothing of one that
    Python did not compile from a file.
    """
    if isinstance(function, SqlFunction):
        return function.place
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (
        ""
        if code is None
        else file_place(code.co_filename, function.__module__, code.co_firstlineno)
    )


def place_of_error(function: Callable[..., Any], error: BaseException) -> str | None:
    """Return the line in a function's file where an error passed last; None where it did not
    pass there.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    lines = [
        line for _, file, line in frames_of(error.__traceback__) if file == code.co_filename
    ]
    return file_place(code.co_filename, function.__module__, lines[-1]) if lines else None


def place_of_value(module: ModuleType, value: object) -> str | None:
    """Return where a module assigns a value of its own to a name; None where it only imports
    it.

    :param value: an object that the module holds under one of its names.
    """
    names = {name for name, other in vars(module).items() if other is value}
    file = module.__file__
    if file is None or not names:
        return None
    for statement in ast.parse(Path(file).read_bytes()).body:
        if names & _assigned(statement):
            return file_place(file, module.__name__, statement.lineno)
    return None


def file_place(file: str, module: str, line: int) -> str:
    """Return the path of a module's file from the root of its packages, and a line in it."""
    path = Path(file)
    is_package = path.name == "__init__.py"
    depth = module.count(".") + (2 if is_package else 1)
    return f"{'/'.join(path.parts[-depth:])}:{line}"


def frames_of(trace: TracebackType | None) -> list[tuple[str, str, int]]:
    """Return the module, the file and the line of each frame of a traceback, that of the error
    last.
    """
    frames = []
    while trace is not None:
        frame = trace.tb_frame
        frames.append(
            (frame.f_globals.get("__name__", ""), frame.f_code.co_filename, trace.tb_lineno)
        )
        trace = trace.tb_next
    return frames


def _assigned(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return set()
    return {target.id for target in targets if isinstance(target, ast.Name)}
