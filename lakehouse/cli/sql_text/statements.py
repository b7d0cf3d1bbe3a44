"""The statements of a script."""

from lakehouse.tables.sql_tokens import Token, tokenize


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
