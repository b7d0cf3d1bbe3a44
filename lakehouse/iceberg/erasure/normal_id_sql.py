"""SQL of an id as all its forms have it, the same as `normal_id` of Python."""

from lakehouse.tables.person import INTEGER

_BLANK = r"[\\s\\p{Z}\\x1C-\\x1F\\x85]+"
"""What Python takes for a space: Java's `\\s` lacks the separators of files, groups, records and
units, and the next line.
"""
_SPACE = f"^{_BLANK}|{_BLANK}$"


def normal_id_sql(column: str, column_type: str = "string") -> str:
    """Return SQL of the normal form of an id, which is text then.

    :param column: SQL of a value of any type.
    :param column_type: its type; Spark writes a large float with an exponent.
    """
    if column_type in ("float", "double"):
        text = f"CAST(try_cast({column} AS DECIMAL(38, 6)) AS STRING)"
        column = f"coalesce(TRIM(TRAILING '0' FROM {text}), CAST({column} AS STRING))"
    text = f"regexp_replace(CAST({column} AS STRING), '{_SPACE}', '')"
    return f"regexp_replace({text}, '{INTEGER}', '$1$2')"
