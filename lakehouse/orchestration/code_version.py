"""The version of the code that computes a table: it changes when the code does, and with nothing
else.

It is a digest of the function, of what that uses of the project's own modules (functions, classes
and constants), those beside its package among them, and of what it reads. What is installed counts
as little as the lakehouse itself: a new version of either makes no table one of older code.
"""

import ast
import copy
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_inputs import reads_metadata
from lakehouse.orchestration.project_code import (
    Definition,
    Imported,
    Module,
    ProjectCode,
    chains_in,
    imports_in,
    normalised,
)
from lakehouse.orchestration.sql_function import SqlFunction
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.feed import Feed

_DIGITS = 12
_PLAIN = (str, bytes, int, float, bool, type(None))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_version(
    compute: Callable[..., Any], inputs: Mapping[str, Input] | None = None
) -> str | None:
    """Return the version of the code that computes a table, a function or a query; None where it
    cannot be told.
    """
    if isinstance(compute, SqlFunction):
        return digest_of_code({"": compute.normalised}, inputs or {})
    return version_of_function(compute, inputs)


def version_of_function(
    compute: Callable[..., Any], inputs: Mapping[str, Input] | None = None
) -> str | None:
    """Return the version of the code that a function is; None where its source cannot be told,
    such as that of a lambda, or of what Python did not read from a file.

    Comments, docstrings and formatting do not count, nor do the name of the function and the
    annotations of its parameters and result; of what it uses these do.
    What a module does to a value of its own after it gave it a name, and what is read from
    files, is not seen.
    """
    function = inspect.unwrap(compute)
    # What is made of a text has no module.
    if not isinstance(function, FunctionType) or not function.__module__:
        return None
    project = ProjectCode(function.__module__)
    module = project.module(function.__module__)
    node = _node_of(function, module) if module else None
    if module is None or node is None:
        return None
    parts = _used(project, module, _without_frame(project, module, node), node.name)
    parts |= _enclosed(function)
    return digest_of_code(parts, inputs or {})


def digest_of_code(parts: Mapping[str, str], inputs: Mapping[str, Input]) -> str:
    """Return the version of some code, given as normalised text by name, that reads some
    inputs.
    """
    told = json.dumps([sorted(parts.items()), reads_metadata(inputs)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]


def _node_of(function: FunctionType, module: Module) -> Function | None:
    """Return the `def` of a function: that of its name which begins at its line."""
    for node in ast.walk(module.tree):
        if isinstance(node, Function) and node.name == function.__name__:
            # A function begins at its first decorator.
            lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
            if min(lines) == function.__code__.co_firstlineno:
                return node
    return None


def _without_frame(project: ProjectCode, module: Module, node: Function) -> Function:
    """Return a function without its name, its annotations, and what the lakehouse decorates it
    with.
    """
    bare = copy.deepcopy(node)
    bare.name = ""
    bare.returns = None
    arguments = bare.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in every:
        argument.annotation = None
    kept = []
    for decorator in bare.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        chain = next(chains_in(called), ("",))
        if not _is_engine(project, module, chain[0]):
            kept.append(decorator)
    bare.decorator_list = kept
    return bare


def _is_engine(project: ProjectCode, module: Module, name: str) -> bool:
    """Whether a name is imported from the lakehouse itself, and not from the project's
    modules.
    """
    imported = module.imports.get(name)
    engine = __name__.partition(".")[0]
    return (
        imported is not None
        and imported.module.partition(".")[0] == engine
        and not project.owns(imported.module)
    )


def _used(project: ProjectCode, module: Module, node: Function, name: str) -> dict[str, str]:
    """Return a function and all that it uses of the project, as normalised text by name."""
    parts = {"": normalised(node)}
    seen = {f"{module.name}:{name}"}
    waiting = list(_definitions(project, module, node))
    while waiting:
        definition = waiting.pop()
        place = f"{definition.module.name}:{definition.name}"
        if place in seen:
            continue
        seen.add(place)
        declared = _declared_value(definition)
        if declared:
            parts[place] = declared
            continue
        parts[place] = normalised(definition.statements)
        for statement in definition.statements:
            waiting.extend(_definitions(project, definition.module, statement))
    return parts


def _definitions(project: ProjectCode, module: Module, node: ast.AST) -> Iterator[Definition]:
    """Yield what a piece of a module's code uses of the project, but for its own parameters."""
    own = _parameters(node) if isinstance(node, Function) else set()
    local: Mapping[str, Imported] = imports_in(node, module.name, is_package=module.is_package)
    for chain in chains_in(node):
        found = None if chain[0] in own else project.find(module, chain, local)
        if found:
            yield found


def _parameters(node: Function) -> set[str]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    starred = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return {argument.arg for argument in (*every, *starred)}


def _declared_value(definition: Definition) -> str:
    """Return what decides the rows of a table or feed that a name stands for; nothing where it
    stands for another thing.

    Their owners and comments are no part of what is computed.
    """
    module = sys.modules.get(definition.module.name)
    return _declared_text(getattr(module, definition.name, None))


def _declared_text(value: object) -> str:
    if isinstance(value, TableDeclaration):
        return repr((value.name, value.declaration_hash, value.wall_time_zone))
    if isinstance(value, Feed):
        return repr((value.name, tuple(value.column_names), value.time_zone))
    return ""


def _enclosed(function: FunctionType) -> dict[str, str]:
    """Return what a function has of the one that it was made in, by name: plain values and
    functions as they are, of all else the kind.
    """
    enclosed = {}
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            # It has no value yet.
            continue
        enclosed[f"closure:{name}"] = _enclosed_text(value)
    return enclosed


def _enclosed_text(value: object) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_enclosed_text, value))}]"
    if isinstance(value, FunctionType):
        return version_of_function(value) or value.__qualname__
    return _declared_text(value) or type(value).__qualname__
