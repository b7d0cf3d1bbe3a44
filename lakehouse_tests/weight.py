"""Measures the size and structure of the codebase, for `make weight`.

Prints each metric with its goal. With `--check` (`make lint`), exits with 1 if a goal that was
reached is exceeded.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Metric:
    """A measured value, at most `goal`; `is_enforced` since it was reached."""

    name: str
    value: float
    goal: float
    is_enforced: bool = False

    @property
    def is_exceeded(self) -> bool:
        """Whether a goal that was reached is not reached any more."""
        return self.is_enforced and self.value > self.goal


def metrics() -> Iterator[Metric]:
    """Yield the metrics of the product code, then those of pages and tests."""
    product, tests = _files("lakehouse"), _files("lakehouse_tests")
    tokens, code_lines = _tokens_and_code_lines(product)
    # The cache of import-linter has imports of files that were replaced within a second.
    graph = grimp.build_graph("lakehouse", cache_dir=None)
    yield Metric("product lines", _lines(product), 62_000)
    yield Metric("code tokens", tokens, 340_000)
    yield Metric("tokens per code line", round(tokens / code_lines, 2), 7.3)
    yield Metric("modules", len(product), 480, is_enforced=True)
    single = sum(
        len(graph.find_modules_that_directly_import(name)) == 1 for name in graph.modules
    )
    yield Metric("modules with a single importer", single, 90, is_enforced=True)
    yield Metric("import layers", _layers(), 9, is_enforced=True)
    yield Metric(
        "files in one folder",
        max(Counter(file.parent for file in product).values()),
        20,
        is_enforced=True,
    )
    names = Counter(file.stem for file in product if file.stem != "__init__")
    yield Metric(
        "module names used more than once",
        sum(n > 1 for n in names.values()),
        0,
        is_enforced=True,
    )
    yield Metric(
        "private Dagster names", sum(map(_private_dagster_names, product)), 12, is_enforced=True
    )
    yield Metric("words of the README", _words(ROOT / "README.md"), 900, is_enforced=True)
    yield Metric("test lines", _lines(tests), 58_000, is_enforced=True)


def _files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _lines(files: Iterable[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def _tokens_and_code_lines(files: Iterable[Path]) -> tuple[int, int]:
    """Count tokens, without comments and docstrings, and the lines on which they are."""
    tokens = code_lines = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        docstrings = _docstring_lines(ast.parse(text))
        lines = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in _NOT_CODE or token.start[0] in docstrings:
                continue
            tokens += 1
            lines.update(range(token.start[0], token.end[0] + 1))
        code_lines += len(lines)
    return tokens, code_lines


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Return the lines of strings that are statements: docstrings, also those of attributes."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _layers() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return max(len(contract.get("layers", ())) for contract in contracts)


def _private_dagster_names(file: Path) -> int:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return sum(
        len(node.names)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and re.match(r"dagster\w*\._", node.module or "")
    )


def _words(page: Path) -> int:
    text = re.sub(r"```.*?```", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return len(text.split())


def main() -> int:
    """Print the metrics; return 1 with `--check` if one is exceeded."""
    measured = list(metrics())
    exceeded = [metric for metric in measured if metric.is_exceeded]
    for metric in exceeded if "--check" in sys.argv else measured:
        kind = "enforced" if metric.is_enforced else "goal"
        print(f"{metric.name:34}{metric.value:>10,} ({kind}: at most {metric.goal:,})")  # noqa: T201
    return 1 if exceeded and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
