"""Code version and source location of a table's function."""

import ast
import hashlib
import inspect
import json
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_specs import reads_metadata
from lakehouse.orchestration.functions.sql_function import SqlFunction
from lakehouse.settings.project_file import find_project_file
from lakehouse.spark.project_code import find_places, is_code_of

_DIGITS = 12
_ENGINE = __name__.partition(".")[0]
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of a syntax tree that differ between versions of Python or do not affect a result."""


def default_code_version(
    compute: Callable[..., Any], inputs: Mapping[str, Input] | None = None
) -> str | None:
    """Return the version of a function or a query; None for a function without a source file."""
    if isinstance(compute, SqlFunction):
        texts = {"": compute.normalised}
    else:
        function = inspect.unwrap(compute)
        is_function = isinstance(function, FunctionType)
        texts = _project_modules(function.__module__ or "") if is_function else {}
    if not texts:
        return None
    content = json.dumps([sorted(texts.items()), reads_metadata(inputs or {})], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class _Module:
    """The normalised text of a module, and the names of the modules that it can import."""

    text: str
    imports: tuple[str, ...]


def _project_modules(name: str) -> dict[str, str]:
    """Return the normalised text of a module and of the project modules it imports, by name."""
    file = _file_of(name)
    if file is None:
        return {}
    project = find_project_file(file.resolve().parent)
    root = project.root.resolve() if project else None
    parts = name.split(".")
    # In this package, only the modules next to the assets belong to the project.
    package = ".".join(parts[: 2 if parts[0] == _ENGINE else 1])
    texts: dict[str, str] = {}
    waiting = {name: file}
    while waiting:
        name, file = waiting.popitem()
        module = _parse(name, file.name == "__init__.py", _read(file))
        texts[name] = module.text
        for imported in module.imports:
            if imported in texts or not _is_of_project(imported, package, root):
                continue
            if found := _file_of(imported):
                waiting[imported] = found
    return texts


def _is_of_project(name: str, package: str, root: Path | None) -> bool:
    top = name.partition(".")[0]
    if f"{name}.".startswith(f"{package}."):
        return True
    return root is not None and top not in ("", _ENGINE) and _is_in(find_places(top), root)


@lru_cache(maxsize=1024)
def _is_in(places: tuple[str, ...], root: Path) -> bool:
    return any(is_code_of(root, Path(place).resolve()) for place in places)


def _file_of(name: str) -> Path | None:
    """Return the source file of a module, without importing it; None for a name without one."""
    top, *rest = name.split(".")
    for place in find_places(top) if top else ():
        path = Path(place, *rest)
        for file in (path, path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.suffix == ".py" and file.is_file():
                return file
    return None


def _read(file: Path) -> str:
    with tokenize.open(file) as source:
        return source.read()


@lru_cache(maxsize=1024)
def _parse(name: str, is_package: bool, text: str) -> _Module:
    tree = ast.parse(text, name)
    package = name if is_package else name.rpartition(".")[0]
    return _Module(_normalised(tree), tuple(dict.fromkeys(_imports(tree, package))))


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield what a module imports, anywhere in it: a name of `from … import` can be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: -(node.level - 1) or None] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _normalised(value: object) -> str:
    """Return a syntax tree as text, the same in every version of Python."""
    if isinstance(value, list):
        return f"[{', '.join(_normalised(part) for part in value if not _is_docstring(part))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = [
        f"{name}={_normalised(part)}"
        for name, part in ast.iter_fields(value)
        if name not in _IGNORED_FIELDS and part is not None and part != []
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


def _is_docstring(part: object) -> bool:
    return (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Constant)
        and isinstance(part.value.value, str)
    )


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
