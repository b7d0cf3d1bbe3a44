"""What a text of SQL holds: its statements, and the tables that each one writes to; nothing is run.

Spark parses the statements themselves. This finds only where one ends and whether it may change a declared table, so
that a question never becomes a change by mistake. Where the text does not tell, it counts as a write to any table.
"""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from lakehouse.cli.tokens import Token, tokenize
from lakehouse.iceberg.catalog import CATALOG_NAME

ANY_TABLE = "*.*"
_READING_PROCEDURES = frozenset({"ancestors_of", "create_changelog_view"})
_BEFORE_NAMES = frozenset({"TABLE", "IF", "NOT", "EXISTS"})
_NAMESPACE_WORDS = frozenset({"NAMESPACE", "DATABASE", "SCHEMA"})
# The word that the name of the target stands after, by the first word of the statement.
_TARGET_AFTER = {
    "UPDATE": "UPDATE",
    "DELETE": "FROM",
    "MERGE": "INTO",
    "TRUNCATE": "TABLE",
    "LOAD": "TABLE",
    "REPLACE": "TABLE",
}

Name = tuple[str, ...]
"""The parts of a dotted name; none where the text does not tell."""


def split(script: str) -> list[str]:
    """Split a script at the semicolons that end statements; a `BEGIN … END` script stays whole."""
    tokens = tokenize(script)
    if tokens and tokens[0].keyword == "BEGIN":
        return [script.strip()]
    statements: list[str] = []
    start: int | None = None
    end = 0
    for token in tokens:
        if token.kind == "mark" and token.text == ";":
            statements += [script[start:end]] if start is not None else []
            start = None
        else:
            start, end = token.start if start is None else start, token.end
    return [*statements, script[start:end]] if start is not None else statements


def verb(statement: str) -> str:
    """Return the word that says what a statement does, in capitals: `INSERT` also after a `WITH`."""
    body = _body(tokenize(statement))
    return body[0].keyword if body else ""


def declared_targets(statement: str, declared: Iterable[str]) -> list[str]:
    """Return those of the declared tables that a statement writes to, or may write to."""
    patterns = targets(statement)
    return [name for name in declared if any(fnmatchcase(name, pattern) for pattern in patterns)]


def targets(statement: str) -> list[str]:
    """Return the tables that a statement writes to, in lower case, as `namespace.table` or a pattern of it.

    `silver.*` is a whole namespace, `*.fruits` a name read by the current namespace, `*.*` what the text does not tell.
    """
    body = _body(tokenize(statement))
    head = body[0].keyword if body else ""
    if head == "BEGIN":
        return [ANY_TABLE]
    if head == "EXECUTE":
        literal = len(body) > 2 and body[2].kind == "text"
        return targets(body[2].text) if literal else [ANY_TABLE]
    if head in ("EXPLAIN", "SHOW", "DESCRIBE", "DESC"):
        return []
    names = [*_inserted(body), *_changed(head, body)]
    return [pattern for name in names for pattern in _patterns(name)]


def _body(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the statement proper, past `WITH a AS (…), b AS (…)`."""
    if not tokens or tokens[0].keyword != "WITH":
        return tokens
    depth = 0
    for at, token in enumerate(tokens):
        if token.kind == "mark":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        elif depth == 0 and tokens[at - 1].text == ")" and token.keyword not in ("", "AS"):
            return tokens[at:]
    return ()


def _inserted(body: Sequence[Token]) -> Iterator[Name]:
    """Find `INSERT INTO …` anywhere: after a `FROM`, Spark takes several."""
    for at, token in enumerate(body[:-1]):
        if token.keyword == "INSERT" and body[at + 1].keyword in ("INTO", "OVERWRITE"):
            rest = body[at + 2 :]
            if "DIRECTORY" not in [word.keyword for word in rest[:2]]:
                yield _read_name(rest)


def _changed(head: str, body: Sequence[Token]) -> Iterator[Name]:
    words = [token.keyword for token in body]
    if head in _TARGET_AFTER:
        yield _read_name(_after(_TARGET_AFTER[head], body))
    elif head in ("ALTER", "DROP") and words[1:2] == ["TABLE"]:
        yield _read_name(body[2:])
        for at in (at for at in range(len(words)) if words[at : at + 2] == ["RENAME", "TO"]):
            yield _read_name(body[at + 2 :])
    elif head == "DROP" and not _NAMESPACE_WORDS.isdisjoint(words[1:2]):
        yield (*_read_name(body[2:])[-1:], "*")
    elif head == "CREATE" and "TABLE" in words[1:4]:
        yield _read_name(_after("TABLE", body))
    elif head == "COMMENT" and words[1:3] == ["ON", "TABLE"]:
        yield _read_name(body[3:])
    elif head == "COMMENT" and words[1:3] == ["ON", "COLUMN"]:
        yield _read_name(body[3:])[:-1]
    elif head == "CALL":
        yield from _called(body[1:])


def _called(call: Sequence[Token]) -> Iterator[Name]:
    """Find the table of a procedure: its argument `table`, or else its first text, the second one of `snapshot`."""
    procedure = _read_name(call)[-1:]
    lowered = [token.text.lower() for token in call]
    dry_run = any(lowered[at : at + 3] == ["dry_run", "=>", "true"] for at in range(len(lowered)))
    if dry_run or not _READING_PROCEDURES.isdisjoint(name.lower() for name in procedure):
        return
    named = [call[at + 2] for at in range(len(call) - 2) if lowered[at : at + 2] == ["table", "=>"]]
    texts = [token for token in call if token.kind == "text"]
    positional = [] if "=>" in lowered else texts[1:] if procedure == ("snapshot",) else texts
    given = [*named, *positional][:1]
    yield _read_name(tokenize(given[0].text)) if given and given[0].kind == "text" else ()


def _after(word: str, tokens: Sequence[Token]) -> Sequence[Token]:
    words = [token.keyword for token in tokens]
    return tokens[words.index(word) + 1 :] if word in words else ()


def _read_name(tokens: Sequence[Token]) -> Name:
    """Read the dotted name at the beginning, past such words as `IF EXISTS`."""
    while tokens and tokens[0].keyword in _BEFORE_NAMES:
        tokens = tokens[1:]
    if [token.text.upper() for token in tokens[:2]] == ["IDENTIFIER", "("]:
        literal = len(tokens) > 3 and tokens[2].kind == "text" and tokens[3].text == ")"
        return _read_name(tokenize(tokens[2].text)) if literal else ()
    parts: list[str] = []
    for at, token in enumerate(tokens):
        if not (token.is_name if at % 2 == 0 else token.text == "."):
            break
        parts += [token.text] if at % 2 == 0 else []
    return tuple(parts)


def _patterns(name: Name) -> Iterator[str]:
    parts = [part.lower() for part in name]
    if not parts:
        yield ANY_TABLE
    elif len(parts) == 1:
        yield f"*.{parts[0]}"
    elif parts[0] == CATALOG_NAME:
        yield ".".join(parts[1:3]) if len(parts) > 2 else f"{CATALOG_NAME}.{parts[1]}"
    elif len(parts) == 2 or parts[2].startswith("branch_"):
        yield ".".join(parts[:2])
    # What is left is a table of another catalog.
