"""What the source of a module says of its names: signatures, fields, defaults and docstrings.

It is read and not asked: an alias stands there as its author wrote it, and a field has the text
that follows it.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from lakehouse.tables.column import Column

_FIELD = re.compile(r"^:(?P<kind>param|returns|raises)(?: (?P<name>[^:]+))?: ?(?P<text>.*)$")
_OPTIONS = re.compile(r"^Unpack\[(?P<name>\w+)]$")
_EMPTY = {"dict": "{}", "list": "[]"}


@dataclass(frozen=True)
class Doc:
    """A docstring in parts, each a line: its paragraphs, the parameters, and the errors."""

    paragraphs: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    raises: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A parameter: type and default as in the code, and its description."""

    name: str
    type: str
    default: str | None = None
    doc: str = ""
    marks: str = ""
    """The stars before its name."""

    @property
    def options(self) -> str:
        """The class that lists what else is taken, of `**options`."""
        match = _OPTIONS.match(self.type)
        return match["name"] if match else ""

    def __str__(self) -> str:
        shown = f"{self.marks}{self.name}: {self.type}" if self.type else self.marks
        return shown if self.default is None else f"{shown} = {self.default}"


@dataclass(frozen=True)
class Told:
    """A documented name: a class with `parameters`, a function, or a constant."""

    name: str
    doc: Doc
    parameters: Sequence[Parameter] = ()
    returns: str | None = None
    """What a function returns; None of what is none."""
    columns: Sequence[Column] = ()
    value: str = ""


@dataclass(frozen=True)
class _Definition:
    module: str
    node: ast.stmt
    docstring: str


def functions_of(module: str) -> Sequence[str]:
    """Return the public functions that a module defines, in their order."""
    names = (node.name for node in _tree(module).body if isinstance(node, ast.FunctionDef))
    return tuple(name for name in names if not name.startswith("_"))


def told(module: str, name: str) -> Told:
    """Return what is told of a name."""
    found = _definition(module, name)
    node, doc = found.node, parsed(found.docstring)
    if isinstance(node, ast.ClassDef):
        return _class(found, name, node, doc)
    if isinstance(node, ast.FunctionDef):
        # A fixture is no function any more, and is asked for by its name.
        if any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list):
            return Told(name, doc)
        return Told(name, doc, _arguments(found.module, node, doc), _written(node.returns))
    value = getattr(importlib.import_module(module), name)
    if all(isinstance(one, Column) for one in value):
        return Told(name, doc, columns=value)
    return Told(name, doc, value=repr(value))


def parsed(docstring: str) -> Doc:
    """Return a docstring in parts."""
    body: list[str] = []
    fields: list[tuple[str, str, list[str]]] = []
    for line in inspect.cleandoc(docstring).splitlines():
        match = _FIELD.match(line)
        if match:
            fields.append((match["kind"], match["name"] or "", [match["text"]]))
        elif fields and line.startswith(" "):
            fields[-1][2].append(line.strip())
        else:
            body.append(line)
    paragraphs = [_joined(text.splitlines()) for text in "\n".join(body).split("\n\n")]
    return Doc(
        [text for text in paragraphs if text],
        {name: _joined(lines) for kind, name, lines in fields if kind == "param"},
        {name: _joined(lines) for kind, name, lines in fields if kind == "raises"},
    )


def _joined(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())


def _class(found: _Definition, name: str, node: ast.ClassDef, doc: Doc) -> Told:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__call__":
            of_call = parsed(ast.get_docstring(method) or "")
            arguments = _arguments(found.module, method, of_call)
            return Told(name, of_call, arguments, _written(method.returns))
    return Told(name, doc, [*_fields(found).values()])


def _fields(found: _Definition) -> dict[str, Parameter]:
    """Return the public fields of a class, those of the classes before it first."""
    node = found.node
    assert isinstance(node, ast.ClassDef)
    fields: dict[str, Parameter] = {}
    for base in node.bases:
        value = getattr(importlib.import_module(found.module), ast.unparse(base), None)
        if getattr(value, "__module__", "").startswith("lakehouse."):
            fields |= _fields(_definition(found.module, ast.unparse(base)))
    for one, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation):
            name, doc = ast.unparse(one.target), parsed(_text(following))
            fields[name] = Parameter(
                name,
                _type(found.module, one.annotation),
                _default(found.module, one.value),
                " ".join(doc.paragraphs),
            )
    return {name: one for name, one in fields.items() if not name.startswith("_")}


def _arguments(module: str, node: ast.FunctionDef, doc: Doc) -> list[Parameter]:
    given, arguments = node.args, []
    without = len(given.args) - len(given.defaults)
    for argument, default in zip(given.args, [*[None] * without, *given.defaults], strict=True):
        arguments.append(_argument(module, argument, default, doc))
    if given.vararg:
        arguments.append(_argument(module, given.vararg, None, doc, "*"))
    elif given.kwonlyargs:
        arguments.append(Parameter("", "", marks="*"))
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        arguments.append(_argument(module, argument, default, doc))
    if given.kwarg:
        arguments.append(_argument(module, given.kwarg, None, doc, "**"))
    return [argument for argument in arguments if argument.name != "self"]


def _argument(
    module: str, argument: ast.arg, default: ast.expr | None, doc: Doc, marks: str = ""
) -> Parameter:
    name = argument.arg
    said = doc.parameters.get(name, "")
    return Parameter(
        name, _type(module, argument.annotation), _default(module, default), said, marks
    )


def _type(module: str, annotation: ast.expr | None) -> str:
    """Return a type as it is written; in place of a name for several, these."""
    return " | ".join(_alternatives(module, part) for part in _written(annotation).split(" | "))


def _alternatives(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name, None)
    if get_origin(value) is Literal:
        return " | ".join(f'"{one}"' for one in get_args(value))
    if isinstance(value, UnionType):
        return " | ".join(one.__name__ for one in get_args(value))
    return name


def _written(annotation: ast.expr | None) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    text = "None" if annotation is None else ast.unparse(annotation)
    literal = re.compile(r"Literal\[([^]]+)]")
    return literal.sub(lambda found: _quoted(found[1].replace(", ", " | ")), text)


def _default(module: str, value: ast.expr | None) -> str | None:
    """Return a default, also where `field(…)` says it, or a constant has it."""
    if value is None:
        return None
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        said = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
        factory = said.get("default_factory")
        return said.get("default") if factory is None else _EMPTY.get(factory, f"{factory}()")
    constant = getattr(importlib.import_module(module), ast.unparse(value), None)
    return _quoted(ast.unparse(value) if constant is None else repr(constant))


def _quoted(text: str) -> str:
    return text.replace("'", '"')


def _definition(module: str, name: str) -> _Definition:
    """Return where a name is defined, perhaps in a module that this one has it from."""
    body = _tree(module).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return _Definition(module, node, ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return _Definition(module, node, _text(following))
        if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
            return _definition(str(node.module), name)
    raise AssertionError(f"{module} does not define {name}")


def _text(node: ast.stmt | None) -> str:
    """Return the text that follows a field or a constant."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return str(node.value.value) if is_text else ""  # type: ignore[union-attr]


@cache
def _tree(module: str) -> ast.Module:
    file: Any = importlib.import_module(module).__file__
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def imports_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each module of ours that a text of Python imports from, with the name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lakehouse."):
            yield from ((str(node.module), one.name) for one in node.names)
