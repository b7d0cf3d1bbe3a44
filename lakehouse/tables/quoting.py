"""Quoting of SQL names and values, safe display of untrusted text, and suggestions of names."""

import shlex
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any


def namespace_of(table: str) -> str:
    """Return the namespace of `namespace.table`; empty for a name without one."""
    return table.rpartition(".")[0]


def namespaces_of(tables: Iterable[str]) -> set[str]:
    """Return the namespaces of some tables."""
    return {namespace_of(table) for table in tables}


_MOST_LISTED = 20


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, such as `silver.fruits` for `silver.fruit` or
    `fruits`; None if none is similar.

    A name without a layer is compared with all names without their layers.
    """
    by_lower_name = {other.lower(): other for other in known}
    matches = get_close_matches(name.lower(), by_lower_name, n=1)
    if not matches and "." not in name:
        last = {other.rpartition(".")[2]: other for other in by_lower_name}
        matches = [last[match] for match in get_close_matches(name.lower(), last, n=1)]
    return by_lower_name[matches[0]] if matches else None


def meant_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: a similar name, or the known ones."""
    names = sorted(known)
    similar = near_name(name, names)
    if similar:
        return f"did you mean {similar}?"
    if not names:
        return "there is none yet."
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"expected one of {', '.join(names[:_MOST_LISTED])}{more}."


_MOST_CHARACTERS = 60
_IN_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN_SIGNS = frozenset("._-/+=@")


def quoted(name: str) -> str:
    r"""Return a name in quotes, with leading and trailing spaces: `' fruit'`, `'\ufeffid'`. A
    long name is cut.
    """
    cut = "…" if len(name) > _MOST_CHARACTERS else ""
    return f"{name[:_MOST_CHARACTERS]!r}{cut}"


def shown(name: str) -> str:
    """Return a complete file name, quoted if it has unusual characters."""
    is_plain = bool(name) and all(
        character.isalnum() or character in _PLAIN_SIGNS for character in name
    )
    return name if is_plain else repr(name)


def visible(text: str) -> str:
    r"""Return a text as one line of visible characters: `\n`, and `\u001b` for an escape.

    Spark decodes these sequences in literals, so a query that contains one runs as shown.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return _IN_SHORT.get(character) or (
        f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def shell_word(name: str) -> str:
    """Return a name quoted for a shell, for a displayed command; an escape is shown as text."""
    return shlex.quote(visible(name))


def identifier(*parts: str) -> str:
    """Quote the parts of a name: `identifier("silver", "fruits")` is `` `silver`.`fruits` ``."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def dotted(name: str) -> str:
    """Quote a dotted name such as `silver.fruits`, part by part."""
    return identifier(*name.split("."))


def literal(value: object) -> str:
    """Return a Python value as a Spark SQL literal.

    :raises TypeError: for an unsupported type.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"CAST({literal(repr(value))} AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, datetime):
        return f"TIMESTAMP {literal(in_utc(value).astimezone(UTC).isoformat(sep=' '))}"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        # Spark replaces `${name}` in statements with a setting or an environment variable.
        return "'" + escaped.replace("${", "\\u0024{") + "'"
    raise TypeError(f"no SQL literal for {type(value).__name__}")


def typed(value: Any, column_type: str) -> str:
    """Return a literal that can be compared with a column without a cast. Spark would cast a
    `timestamp_ntz` column for a timestamp literal, and Spark 3.5 cannot push filters on cast
    columns down to Iceberg.

    :param column_type: the declared type; for `timestamp_ntz`, a timestamp is converted to UTC,
        the session zone.
    """
    if column_type == "timestamp_ntz" and isinstance(value, datetime):
        time = in_utc(value).astimezone(UTC).replace(tzinfo=None)
        return f"TIMESTAMP_NTZ {literal(time.isoformat(sep=' '))}"
    return literal(value)


def literals(values: Iterable[object]) -> str:
    """Return values as a parenthesised list for `IN`."""
    return "(" + ", ".join(literal(value) for value in values) + ")"


def json_of(value: str, *, keeps_nulls: bool = False) -> str:
    """Return SQL for the JSON text of a value, distinct for distinct values.

    By default Spark writes times in milliseconds, which makes close timestamps equal.

    :param value: SQL of a struct, an array or a map.
    :param keeps_nulls: whether fields without a value are included.
    """
    options = {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    }
    options |= {"ignoreNullFields": "false"} if keeps_nulls else {}
    terms = [literal(each) for option in options.items() for each in option]
    return f"to_json({value}, map({', '.join(terms)}))"


def counts(predicate: str) -> str:
    """Return the aggregate that counts rows matching a predicate; `count_if` is a tenth slower."""
    return f"count(CASE WHEN {predicate} THEN 1 END)"


def in_values(column: str, values: Collection[object], alias: str = "") -> str:
    """Return the predicate of rows whose column has one of some values; None matches NULL.

    :param alias: the table alias, if other tables have the column too.
    """
    name = f"{alias}.{identifier(column)}" if alias else identifier(column)
    known = [value for value in values if value is not None]
    tests = [f"{name} IN {literals(sorted(known))}"] if known else []  # type: ignore[type-var]
    tests += [f"{name} IS NULL"] if None in values else []
    return f"({' OR '.join(tests)})" if tests else "false"


def without_zone(value: str, column_type: str) -> str:
    """Return SQL for a value to collect in Python: a timestamp as its time in UTC, the session
    zone.

    PySpark converts timestamps to the local zone of the machine. In a repeated hour at the end
    of daylight saving time, a Spark Connect client cannot distinguish the two.

    :param value: SQL of a value.
    :param column_type: its type.
    """
    return f"CAST({value} AS timestamp_ntz)" if column_type == "timestamp" else value


def in_utc(value: Any) -> Any:
    """Attach UTC to a naive datetime, as SQL compares it; return other values unchanged."""
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if is_naive else value


def between(column: str, low: object, high: object) -> str:
    """Return the predicate of rows whose column is between two values.

    True for all rows if the bounds are floats, since Iceberg's file pruning orders -0.0 below
    0.0, or if they have no literal. None means that there are no values, so no row matches.

    :param low: a naive datetime is in UTC; see `without_zone`.
    """
    if low is None:
        return "false"
    if not isinstance(low, (int, Decimal, str, date)):
        return "true"
    return (
        f"({identifier(column)} >= {literal(low)} AND {identifier(column)} <= {literal(high)})"
    )
