"""How names and values are written into SQL; the one place that quotes."""

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def identifier(*parts: str) -> str:
    """Quote the parts of a name: `identifier("silver", "fruits")` is `` `silver`.`fruits`
    ``.
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def dotted(name: str) -> str:
    """Quote a dotted name such as `silver.fruits`, part by part."""
    return identifier(*name.split("."))


def literal(value: object) -> str:
    """Write a Python value as a Spark SQL literal.

    :raises TypeError: for a type that has no literal here.
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
        # Spark replaces `${name}` in the text of a statement by a setting, or by a variable of
        # the environment.
        return "'" + escaped.replace("${", "\\u0024{") + "'"
    raise TypeError(f"no SQL literal for {type(value).__name__}")


def typed(value: Any, column_type: str) -> str:
    """Write a Python value as a literal that a column is compared with as it is: Spark casts a
    column without a zone where a moment has one, and Spark 3.5 can tell Iceberg nothing of a column
    that is cast.

    :param column_type: as a declaration names it; a moment is compared with a `timestamp_ntz` as
        its time in UTC, the zone of the session.
    """
    if column_type == "timestamp_ntz" and isinstance(value, datetime):
        time = in_utc(value).astimezone(UTC).replace(tzinfo=None)
        return f"TIMESTAMP_NTZ {literal(time.isoformat(sep=' '))}"
    return literal(value)


def literals(values: Iterable[object]) -> str:
    """Write values as a parenthesised list for `IN`."""
    return "(" + ", ".join(literal(value) for value in values) + ")"


def json_of(value: str, *, keeps_nulls: bool = False) -> str:
    """Write the text of a value of any type, another for another value.

    By itself Spark writes times in milliseconds, and two within one as the same.

    :param value: SQL of a struct, an array or a map.
    :param keeps_nulls: whether fields without a value are written too.
    """
    options = {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    }
    options |= {"ignoreNullFields": "false"} if keeps_nulls else {}
    terms = [literal(each) for option in options.items() for each in option]
    return f"to_json({value}, map({', '.join(terms)}))"


def counts(predicate: str) -> str:
    """Write the aggregate that counts the rows which meet a predicate; `count_if` takes a tenth
    longer.
    """
    return f"count(CASE WHEN {predicate} THEN 1 END)"


def among(column: str, values: Collection[object], alias: str = "") -> str:
    """Write the predicate of the rows whose column has one of some values, None standing for
    NULL.

    :param alias: what the table is called where others have such a column too.
    """
    name = f"{alias}.{identifier(column)}" if alias else identifier(column)
    known = [value for value in values if value is not None]
    tests = [f"{name} IN {literals(sorted(known))}"] if known else []  # type: ignore[type-var]
    tests += [f"{name} IS NULL"] if None in values else []
    return f"({' OR '.join(tests)})" if tests else "false"


def without_zone(value: str, column_type: str) -> str:
    """Write a value that goes to Python: a moment as its time in UTC, the zone of the session.

    PySpark gives moments to Python in the time of the machine. Of an hour that a clock shows
    twice, a client of Spark Connect is not told which of the two it is.

    :param value: SQL of a value.
    :param column_type: its type.
    """
    return f"CAST({value} AS timestamp_ntz)" if column_type == "timestamp" else value


def in_utc(value: Any) -> Any:
    """Return a time without a zone as the moment that it is in UTC, as SQL compares it; anything
    else as it is.
    """
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if is_naive else value


def between(column: str, low: object, high: object) -> str:
    """Write the predicate of the rows whose column lies between the least and the greatest of
    some values.

    True of all rows where the bounds are floats, whose -0.0 lies below 0.0 where Iceberg leaves
    files out, or have no literal. None is in no bounds: they are of no value at all.

    :param low: a time without a zone is in UTC, see `without_zone`.
    """
    if low is None:
        return "false"
    if not isinstance(low, (int, Decimal, str, date)):
        return "true"
    return (
        f"({identifier(column)} >= {literal(low)} AND {identifier(column)} <= {literal(high)})"
    )
