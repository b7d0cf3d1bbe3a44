"""Prints the test files that the import graph reaches from changed modules, for `make test-changed`.

Prints the whole suite if a file changed that every test depends on, such as the lock file.
"""

import subprocess
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGES = ("lakehouse", "lakehouse_tests")
EVERYTHING = (
    "Makefile",
    "pyproject.toml",
    "requirements",
    ".ci",
    "lakehouse_tests/conftest.py",
)
"""Prefixes of files on which every test depends."""
DOCUMENTATION = ("docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "deploy", "benchmarks")
LOADED_BY_NAME = {
    "lakehouse.assets": "lakehouse.definitions",
    "lakehouse.cli": "lakehouse.cli.program",
}
"""Packages whose modules are loaded by name, and the module that loads them."""


def changed_files(base: str) -> list[Path]:
    """Return the files that differ from the merge base with `base`, and the untracked ones."""
    differing = _git("diff", "--name-only", "--merge-base", base)
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return sorted({Path(name) for name in differing + untracked})


def reached_tests(changed: list[Path]) -> list[str]:
    """Return the test files and folders to run, relative to the repository."""
    if any(str(path).startswith(EVERYTHING) for path in changed):
        return ["lakehouse_tests"]
    tests = (
        {"lakehouse_tests/docs"} if any(_is_documentation(path) for path in changed) else set()
    )
    graph = _import_graph()
    for path in changed:
        if module := _module(path, graph.modules):
            reached = graph.find_downstream_modules(module, as_package=path.suffix != ".py")
            tests |= {_test_file(name) for name in {module, *reached}}
    return sorted(tests - {""})


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")[:-1]


def _is_documentation(path: Path) -> bool:
    return path.parts[0] in DOCUMENTATION


def _import_graph() -> grimp.ImportGraph:
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))
    for package, importer in LOADED_BY_NAME.items():
        for module in graph.find_descendants(package) - {importer}:
            graph.add_import(importer=importer, imported=module)
    return graph


def _module(path: Path, modules: set[str]) -> str:
    """Return the module of a file; of a data file the package that contains it, or ''."""
    if path.parts[0] not in PACKAGES:
        return ""
    is_module = path.suffix == ".py" and path.name != "__init__.py"
    name = ".".join(path.with_suffix("").parts if is_module else path.parent.parts)
    return name if name in modules else ""


def _test_file(module: str) -> str:
    path = Path(*module.split(".")).with_suffix(".py")
    is_test = path.parts[0] == "lakehouse_tests" and path.name.startswith("test_")
    return str(path) if is_test and (ROOT / path).is_file() else ""


if __name__ == "__main__":
    print("\n".join(reached_tests(changed_files(sys.argv[1]))))  # noqa: T201
