"""What a text of SQL holds: its statements, and the tables that each one writes to; nothing is
run.

Spark parses the statements themselves. This finds only where one ends and whether it may change
a declared table, so that a question never becomes a change by mistake. Where the text does not
tell, it counts as a write to any table.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain, pairwise

from lakehouse.cli.sql_text.procedure_calls import Call, read_call
from lakehouse.cli.sql_text.table_names import ANY_TABLE, Name, patterns, read_name
from lakehouse.tables.sql_tokens import UNCLEAR_COMMENT, Token, keywords, tokenize

_NAMESPACE_WORDS = frozenset({"NAMESPACE", "DATABASE", "SCHEMA"})
_CREATED_KINDS = frozenset({"TABLE", "VIEW", "FUNCTION", *_NAMESPACE_WORDS})
_TEMPORARY = frozenset({"TEMPORARY", "TEMP"})
_WRITING_ANYTHING = frozenset({"BEGIN", "EXECUTE", "INSERT", "EXPORT", "IMPORT"})
"""What else may write. Of what remains some statements only read, and of a word that is none
Spark says so.
"""
# The word that the name of the target stands after, by the first word of the statement.
_TARGET_AFTER = {
    "UPDATE": "UPDATE",
    "DELETE": "FROM",
    "MERGE": "INTO",
    "TRUNCATE": "TABLE",
    "LOAD": "TABLE",
    "REPLACE": "TABLE",
    "REPAIR": "TABLE",
    "MSCK": "TABLE",
    "ANALYZE": "TABLE",
}
_PLACES = frozenset({"LOCATION", "OPTIONS"})
"""Words after which a folder may be named, which may be that of another table."""
_RUNNING_CODE = frozenset({"reflect", "try_reflect", "java_method"})
"""Functions that call any method of Java."""
_SCRIPTS = frozenset({"TRANSFORM", "MAP", "REDUCE"})
"""Words that send rows through a script of the operating system: `SELECT TRANSFORM(…) USING
'…'`.
"""
_CATALOG_SETTINGS = ("spark.sql.catalog.", "spark.sql.defaultcatalog")
_UNNAMED: Name = ()
_WORD = re.compile(r"\w+")
_TAKING_OUT = frozenset(
    {"DELETE", "TRUNCATE", "DROP", "REPLACE", "OVERWRITE", "ALTER", "EXECUTE"}
)
"""Words of statements that may take rows out of a table."""
_MOVING = frozenset(
    {
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
        "fast_forward",
        "cherrypick_snapshot",
        "publish_changes",
    }
)
"""Procedures that give the readers of a table another snapshot."""
_SNAPSHOT_PROPERTY = "snapshot-id"
"""End of the properties that Iceberg takes for a call of such a procedure."""


def split(script: str) -> list[str]:
    """Split a script at the semicolons that end statements; a `BEGIN … END` script stays
    whole.
    """
    tokens = tokenize(script)
    if tokens and tokens[0].keyword == "BEGIN":
        return [script.strip()]
    statements: list[str] = []
    start: int | None = None
    end = 0
    for token in tokens:
        if not token.is_mark(";"):
            start = token.start if start is None else start
            end = token.end
        elif start is not None:
            statements.append(script[start:end])
            start = None
    return [*statements, script[start:end]] if start is not None else statements


def verb(statement: str) -> str:
    """Return the word that says what a statement does, in capitals: `INSERT` also after a
    `WITH`.
    """
    return _first_word(_body(tokenize(statement)))


def call_of(statement: str) -> Call | None:
    """Return the procedure that a statement calls, also as `EXECUTE IMMEDIATE 'CALL …'`; None
    where it is no call.
    """
    body = _ran(tokenize(statement))
    inner = _executed(body)
    if inner is not None:
        return call_of(inner)
    return read_call(body[1:]) if _first_word(body) == "CALL" else None


def changed_rows_of(statement: str) -> list[str]:
    """Return what DELETE, UPDATE and MERGE change rows of, as `targets` does; nothing for other
    statements.
    """
    body = _ran(tokenize(statement))
    inner = _executed(body)
    if inner is not None:
        return changed_rows_of(inner)
    return targets(statement) if _first_word(body) in ("DELETE", "UPDATE", "MERGE") else []


def emptied_by(statement: str) -> list[str]:
    """Return the tables that a statement takes rows out of, as `targets` does: DELETE, TRUNCATE,
    DROP, REPLACE, a MERGE that deletes, an INSERT that overwrites, and what gives a table another
    name or its readers another snapshot; nothing for other statements.

    `*.*` is what the text does not tell, as of a script that deletes.
    """
    tokens = tokenize(statement)
    body = _ran(tokens)
    inner = _executed(body)
    if inner is not None:
        return emptied_by(inner)
    if any(token.is_mark(UNCLEAR_COMMENT) for token in tokens):
        has_word = not _TAKING_OUT.isdisjoint(_WORD.findall(statement.upper()))
        return [ANY_TABLE] if has_word else []
    names = [*_emptied(_first_word(body), body), *_overwritten(body)]
    return list(chain.from_iterable(map(patterns, names)))


def declared_targets(statement: str, declared: Iterable[str]) -> list[str]:
    """Return those of the declared tables that a statement writes to, or may write to."""
    written = targets(statement)
    return [name for name in declared if any(fnmatchcase(name, pattern) for pattern in written)]


def targets(statement: str) -> list[str]:
    """Return the tables that a statement writes to, in lower case, as `namespace.table` or a
    pattern of it.

    `silver.*` is a whole namespace, `*.fruits` a name read by the current namespace, `*.*` what
    the text does not tell.
    """
    return _targets(tokenize(statement))


def _targets(tokens: Sequence[Token]) -> list[str]:
    if _is_unclear(tokens):
        return [ANY_TABLE]
    body = _ran(tokens)
    inner = _executed(body)
    if inner is not None:
        return targets(inner)
    names = [*_inserted(body), *_changed(_first_word(body), body)]
    return list(chain.from_iterable(map(patterns, names)))


def _is_unclear(tokens: Sequence[Token]) -> bool:
    """Whether it may be read in two ways, or runs code of which nothing is known."""
    words = keywords(tokens)
    has_script = not _SCRIPTS.isdisjoint(words)
    if any(token.is_mark(UNCLEAR_COMMENT) for token in tokens):
        return True
    for token, following in pairwise(tokens):
        is_code = token.is_name and token.text.lower() in _RUNNING_CODE
        if is_code and following.is_mark("("):
            return True
        if has_script and token.keyword == "USING" and following.kind == "text":
            return True
    setting = "".join(token.text for token in tokens).lower() if words[:1] == ["SET"] else ""
    return any(name in setting for name in _CATALOG_SETTINGS)


def _executed(body: Sequence[Token]) -> str | None:
    """Return the text that `EXECUTE IMMEDIATE '…'` runs; None of anything else, and of an
    expression.
    """
    if keywords(body[:2]) != ["EXECUTE", "IMMEDIATE"] or len(body) < 3:
        return None
    is_whole = len(body) == 3 or body[3].keyword in ("INTO", "USING")
    return body[2].plain_text if is_whole else None


def _body(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the statement proper, past `WITH a AS (…), b AS (…)`."""
    if not tokens or tokens[0].keyword != "WITH":
        return tokens
    depth = 0
    for at, token in enumerate(tokens):
        follows = at > 0 and depth == 0 and tokens[at - 1].is_mark(")")
        is_word = token.keyword not in ("", "AS", "MAX")
        if follows and (is_word or token.is_mark("(")):
            return tokens[at:]
        if token.kind == "mark":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
    return ()


def _ran(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the statement proper that Spark runs: nothing of an EXPLAIN, but for one of `EXECUTE
    IMMEDIATE`, which it runs to know its plan.
    """
    body = _body(tokens)
    if _first_word(body) != "EXPLAIN":
        return body
    words = keywords(body)
    return body[words.index("EXECUTE") :] if "EXECUTE" in words else ()


def _emptied(head: str, body: Sequence[Token]) -> Iterator[Name]:
    """Find what a statement takes rows out of, by its first word."""
    words = keywords(body)
    if head == "EXECUTE" or (head == "BEGIN" and _may_take_out(body)):
        yield _UNNAMED
    elif head in ("DELETE", "TRUNCATE") or (head == "MERGE" and "DELETE" in words):
        yield read_name(_after(_TARGET_AFTER[head], body))
    elif head == "DROP":
        yield from _dropped(body)
    elif head in ("CREATE", "REPLACE") and ("REPLACE", "TABLE") in pairwise(words):
        yield read_name(_after("TABLE", body))
    elif head == "ALTER" and _moves_table(body):
        yield read_name(body[2:])
    elif head == "CALL":
        call = read_call(body[1:])
        yield from [call.table] if call.procedure in _MOVING else []


def _may_take_out(script: Sequence[Token]) -> bool:
    words = keywords(script)
    if not _TAKING_OUT.isdisjoint(words) or ("CALL", "IDENTIFIER") in pairwise(words):
        return True
    return any(token.is_name and token.text.lower() in _MOVING for token in script)


def _overwritten(body: Sequence[Token]) -> Iterator[Name]:
    """Find what an INSERT puts its rows in place of; a folder is no table."""
    words = keywords(body)
    replaces = "OVERWRITE" in words or ("REPLACE", "WHERE") in pairwise(words)
    if "INSERT" in words and replaces and words[:1] != ["BEGIN"]:
        names = list(_inserted(body))
        if "DIRECTORY" in words:
            names = [name for name in names if name]
        elif not names:
            names = [_UNNAMED]
        yield from names


def _moves_table(body: Sequence[Token]) -> bool:
    """Whether an ALTER gives a table another name, or its readers another snapshot."""
    words = keywords(body)
    if ("RENAME", "TO") in pairwise(words):
        return True
    if {"REPLACE", "BRANCH"} <= set(words):
        return any(token.is_name and token.text == "main" for token in body)
    if "TBLPROPERTIES" not in words:
        return False
    texts = [token for token in body if token.kind == "text"]
    return any(token.plain_text is None for token in texts) or any(
        _SNAPSHOT_PROPERTY in token.text.lower() for token in body
    )


def _inserted(body: Sequence[Token]) -> Iterator[Name]:
    """Find `INSERT INTO …` anywhere: after a `FROM`, Spark takes several. A folder may be that
    of a table.
    """
    for at, token in enumerate(body[:-1]):
        if token.keyword == "INSERT" and body[at + 1].keyword in ("INTO", "OVERWRITE"):
            rest = body[at + 2 :]
            is_folder = "DIRECTORY" in keywords(rest[:2])
            yield _UNNAMED if is_folder else read_name(rest)


def _changed(head: str, body: Sequence[Token]) -> Iterator[Name]:
    """Find what a statement changes, by its first word."""
    if head in _TARGET_AFTER:
        yield read_name(_after(_TARGET_AFTER[head], body))
    elif head == "ALTER":
        yield from _altered(body)
    elif head == "DROP":
        yield from _dropped(body)
    elif head == "CREATE":
        yield from _created(body)
    elif head == "COMMENT":
        yield from _commented(body)
    elif head == "CALL":
        call = read_call(body[1:])
        if call.writes:
            yield call.table
            yield from [_UNNAMED] if call.names_files else []
    elif head in _WRITING_ANYTHING and not any(_inserted(body)):
        yield _UNNAMED


def _altered(body: Sequence[Token]) -> Iterator[Name]:
    words = keywords(body)
    kind = words[1] if len(words) > 1 else ""
    if kind in ("TABLE", "VIEW"):
        yield read_name(body[2:])
    elif kind in _NAMESPACE_WORDS:
        yield _tables_of(read_name(body[2:]))
    else:
        yield _UNNAMED
    for at, pair in enumerate(pairwise(words)):
        if pair == ("RENAME", "TO"):
            yield read_name(body[at + 2 :])
    yield from _elsewhere(words)


def _dropped(body: Sequence[Token]) -> Iterator[Name]:
    words = keywords(body[1:3])
    kind = next((word for word in words if word not in _TEMPORARY), "")
    if kind in ("TABLE", "VIEW"):
        yield read_name(body[2:])
    elif kind in _NAMESPACE_WORDS:
        yield _tables_of(read_name(body[2:]))
    elif kind not in ("FUNCTION", "VARIABLE", "VAR"):
        yield _UNNAMED


def _created(body: Sequence[Token]) -> Iterator[Name]:
    words = keywords(body)
    is_temporary = not _TEMPORARY.isdisjoint(words[1:5])
    kind = next((word for word in words[1:6] if word in _CREATED_KINDS), "")
    if kind == "TABLE" or (kind == "VIEW" and not is_temporary):
        yield read_name(_after(kind, body))
    elif not kind or (kind == "VIEW" and "USING" in words):
        yield _UNNAMED
    yield from _elsewhere(words)


def _elsewhere(words: Sequence[str]) -> Iterator[Name]:
    if not _PLACES.isdisjoint(words):
        yield _UNNAMED


def _commented(body: Sequence[Token]) -> Iterator[Name]:
    words = keywords(body)
    if words[1:3] == ["ON", "TABLE"]:
        yield read_name(body[3:])
    elif words[1:3] == ["ON", "COLUMN"]:
        yield read_name(body[3:])[:-1]


def _first_word(body: Sequence[Token]) -> str:
    return body[0].keyword if body else ""


def _tables_of(namespace: Name) -> Name:
    return (*namespace[-1:], "*") if namespace else _UNNAMED


def _after(word: str, tokens: Sequence[Token]) -> Sequence[Token]:
    words = keywords(tokens)
    return tokens[words.index(word) + 1 :] if word in words else ()
