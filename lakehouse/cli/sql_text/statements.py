"""The statements of a script, and the tables that each one names."""

import re

from lakehouse.iceberg.metadata.catalog import CATALOG_NAME
from lakehouse.tables.sql_tokens import Token, tokenize

_NAME = r"[\w`-]+(?:\.[\w`-]+)*"
_TARGET = re.compile(
    r"(INSERT (?:WITH SCHEMA EVOLUTION )?(?:INTO|OVERWRITE)|DELETE FROM|(?<!THEN )UPDATE"
    r"|MERGE (?:WITH SCHEMA EVOLUTION )?INTO|TRUNCATE TABLE|(?:CREATE |REPLACE )(?:TABLE|VIEW))"
    rf"(?: TABLE)?(?: IF NOT EXISTS)? ({_NAME})"
)


def split(script: str) -> list[str]:
    """Split a script at semicolons; a `BEGIN … END` script is one statement."""
    if first_word(script) == "BEGIN":
        return [script.strip()]
    statements: list[list[Token]] = [[]]
    for token in tokenize(script):
        if token.is_mark(";"):
            statements.append([])
        else:
            statements[-1].append(token)
    return [script[tokens[0].start : tokens[-1].end] for tokens in statements if tokens]


def first_word(statement: str) -> str:
    """Return the first word in capitals."""
    return next((token.keyword for token in tokenize(statement)), "")


def plain_text(statement: str, *, with_literals: bool = False) -> str:
    """Return a statement in capitals, with one space between words and without comments.

    :param with_literals: include what is between quotes.
    """
    texts = []
    for token in tokenize(statement):
        text = token.text.upper().replace("'", " ")
        if token.kind == "text":
            text = f"'{text}'" if with_literals else "''"
        texts.append(f"`{text}`" if token.kind == "quoted" else text)
    return re.sub(r" ?\. ?", ".", " ".join(texts))


def targets(statement: str) -> list[tuple[str, str]]:
    """Return the target tables of DML and CREATE statements with their leading keywords."""
    return [(head, _table(name)) for head, name in _TARGET.findall(plain_text(statement))]


def named_tables(statement: str) -> set[str]:
    """Return all possible table names, such as `silver.fruits`, also in quotes."""
    return set(map(_table, re.findall(_NAME, plain_text(statement, with_literals=True))))


def _table(name: str) -> str:
    parts = name.lower().replace("`", "").split(".")
    return ".".join((parts[1:] if parts[0] == CATALOG_NAME else parts)[:2])
