"""The queries of Dagster's UI, extracted from its installed pages."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_SPREAD = re.compile(r"\.\.\.\s*([A-Z]\w+)")
_DEFINITION = re.compile(r"\b(?:query|fragment) (\w+)[^{}\"]*{")


def query_text(name: str) -> str:
    """Return a query with its fragments."""
    known, needed = _definitions(), [name]
    for each in needed:
        for spread in _SPREAD.findall(known[each]):
            if spread not in needed:
                needed.append(spread)
    return "\n".join(known[each] for each in needed)


@cache
def _definitions() -> dict[str, str]:
    """Return all queries and fragments by name."""
    spec = find_spec("dagster_webserver")
    assert spec is not None and spec.origin is not None
    found: dict[str, str] = {}
    for file in sorted(Path(spec.origin).with_name("webapp").rglob("*.js")):
        script = file.read_text(encoding="utf-8").replace("\\n", "\n")
        for begin in _DEFINITION.finditer(script):
            found.setdefault(begin[1], script[begin.start() : _end(script, begin.end())])
    return found


def _end(text: str, start: int) -> int:
    """Return the position of the matching closing brace."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)
