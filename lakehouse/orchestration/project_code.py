"""The code of a project as it is written: its modules, and what a piece of one refers to."""

import ast
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from lakehouse.project_file import find_project_file
from lakehouse.runtime.own_modules import find_places, own_folders, places_of

_ENGINE = __name__.partition(".")[0]
_UNTOLD = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of Python's syntax tree that mean nothing here."""

Chain = tuple[str, ...]
"""A name and what follows it by dots: `helpers.rates` is `("helpers", "rates")`."""


@dataclass(frozen=True)
class Imported:
    """What a name stands for that was imported: a module, or where `name` is given something of
    it, which may be a module too.
    """

    module: str
    name: str = ""


@dataclass
class Module:
    """A module: by name the statements that give it its value, and what is imported."""

    name: str
    is_package: bool
    statements: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))


@dataclass(frozen=True)
class Definition:
    """A name of a module, and the statements that give it its value."""

    module: Module
    name: str

    @property
    def statements(self) -> list[ast.stmt]:
        """The statements, in order: a name may be given a value more than once."""
        return self.module.statements[self.name]


class ProjectCode:
    """The modules that belong to a project: those of the package that one of them is in, and those
    that lie beside it, such as in `src`, or in the folder of its `pyproject.toml`.

    Of the package that this module is of, only those below the same folder: its other modules
    are the engine, and no part of what computes a table.
    """

    def __init__(self, module: str) -> None:
        """Begin with a module of it, by its name."""
        is_engine = module.partition(".")[0] == _ENGINE
        self._root = ".".join(module.split(".")[: 2 if is_engine else 1])
        self._beside: dict[str, bool] = {_ENGINE: False}
        self._folders = frozenset() if is_engine else _folders_of_project(self._root)

    def owns(self, module: str) -> bool:
        """Whether a module is of the project, and not of what it has installed."""
        return f"{module}.".startswith(f"{self._root}.") or self._is_beside(module)

    def _is_beside(self, module: str) -> bool:
        top = module.partition(".")[0]
        if not self._folders:
            return False
        if top not in self._beside:
            self._beside[top] = _lies_in(find_places(top), self._folders)
        return self._beside[top]

    def module(self, name: str) -> Module | None:
        """Return a module of the project; None of any other, and where it is no file."""
        file = _file_of(name) if self.owns(name) else None
        if file is None:
            return None
        # A module may say in which encoding it is.
        with tokenize.open(file) as source:
            return _parse(name, str(file), source.read())

    def find(
        self, module: Module, chain: Chain, local: Mapping[str, Imported]
    ) -> Definition | None:
        """Return what a name in a module stands for; None where that is of no module of the
        project.

        :param local: what the function that names it has imported itself.
        """
        return self._find(module, chain, local, frozenset())

    def _find(
        self,
        module: Module,
        chain: Chain,
        local: Mapping[str, Imported],
        asked: frozenset[tuple[str, Chain]],
    ) -> Definition | None:
        first, *rest = chain
        if (module.name, chain) in asked:
            # Modules may import all of each other.
            return None
        asked |= {(module.name, chain)}
        if first not in local and first in module.statements:
            return Definition(module, first)
        imported = local.get(first) or module.imports.get(first)
        if imported:
            follows = (imported.name, *rest) if imported.name else tuple(rest)
            return self._in_module(imported.module, follows, asked)
        for name in module.star_imports:
            found = self._in_module(name, chain, asked)
            if found:
                return found
        return None

    def _in_module(
        self, name: str, chain: Chain, asked: frozenset[tuple[str, Chain]]
    ) -> Definition | None:
        """Return what stands under a name in a module, or in one that is below it."""
        if not chain:
            return None
        module = self.module(name)
        found = self._find(module, chain, {}, asked) if module else None
        submodule = f"{name}.{chain[0]}"
        # What leads to the modules of a project need not be one of them.
        leads_there = f"{self._root}.".startswith(f"{submodule}.")
        if found or not (leads_there or self.owns(submodule)):
            return found
        return self._in_module(submodule, chain[1:], asked)


def _folders_of_project(package: str) -> frozenset[Path]:
    """Return the folders whose modules are of the project that a package lies in; none where it is
    in no project.
    """
    module = sys.modules.get(package)
    return _folders_around(package, places_of(module)) if module else frozenset()


@lru_cache(maxsize=256)
def _folders_around(package: str, places: tuple[str, ...]) -> frozenset[Path]:
    for place in places:
        project = find_project_file(Path(place).resolve().parent)
        if project:
            return own_folders(project.root, package)
    return frozenset()


@lru_cache(maxsize=1024)
def _lies_in(places: tuple[str, ...], folders: frozenset[Path]) -> bool:
    return any(Path(place).resolve().parent in folders for place in places)


def chains_in(node: ast.AST) -> Iterator[Chain]:
    """Yield the names that a piece of code uses, each with what follows it by dots."""
    dotted: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        dotted.insert(0, inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield (inner.id, *dotted)
        return
    for child in ast.iter_child_nodes(inner):
        yield from chains_in(child)


def imports_in(node: ast.AST, module: str, *, is_package: bool) -> dict[str, Imported]:
    """Return what a piece of a module's code imports, by the names that it has then."""
    imports: dict[str, Imported] = {}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                imports[alias.asname or whole] = Imported(whole)
        elif isinstance(statement, ast.ImportFrom):
            source = _source_of(statement, module, is_package=is_package)
            for alias in statement.names:
                imports[alias.asname or alias.name] = Imported(source, alias.name)
    return imports


def normalised(node: ast.AST | list[ast.stmt]) -> str:
    """Return code as text that tells nothing of its formatting, comments and docstrings, and is
    the same in each version of Python.
    """
    if isinstance(node, list):
        return f"[{', '.join(_text(part) for part in node)}]"
    return _text(node)


def _text(value: object) -> str:
    if isinstance(value, list):
        parts = [_text(part) for part in value if not _is_docstring(part)]
        return f"[{', '.join(parts)}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = []
    for name, part in ast.iter_fields(value):
        # Versions of Python differ in which empty fields there are.
        if name not in _UNTOLD and part is not None and part != []:
            fields.append(f"{name}={_text(part)}")
    return f"{type(value).__name__}({', '.join(fields)})"


def _is_docstring(part: object) -> bool:
    """Whether a statement is a text alone, which does nothing."""
    return (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Constant)
        and isinstance(part.value.value, str)
    )


def _file_of(module: str) -> Path | None:
    """Return the source of a module, which need not have been imported yet."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
    else:
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            # What leads to it cannot be imported; who imports it is told.
            return None
        file = spec.origin if spec else None
    path = Path(file) if file else None
    return path if path and path.suffix == ".py" and path.is_file() else None


@lru_cache(maxsize=256)
def _parse(name: str, file: str, text: str) -> Module:
    tree, is_package = ast.parse(text, file), Path(file).name == "__init__.py"
    module = Module(name, is_package, tree=tree)
    for statement in tree.body:
        for bound in _bound_by(statement):
            module.statements.setdefault(bound, []).append(statement)
    for imported in _top_level_imports(tree):
        module.imports |= imports_in(imported, name, is_package=is_package)
        if isinstance(imported, ast.ImportFrom) and imported.names[0].name == "*":
            module.star_imports.append(_source_of(imported, name, is_package=is_package))
    return module


def _top_level_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module itself, also those in an `if` or `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _top_level_imports(child)


def _bound_by(statement: ast.AST) -> Iterator[str]:
    """Yield the names that a statement of a module gives a value, also inside of an `if` or
    `try`.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
        yield statement.id
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.Lambda):
            yield from _bound_by(child)


def _source_of(statement: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """Return the module that `from … import` names, also by dots."""
    if not statement.level:
        return statement.module or ""
    parts = module.split(".")
    up = statement.level - 1 if is_package else statement.level
    base = parts[: len(parts) - up]
    return ".".join([*base, statement.module] if statement.module else base)
