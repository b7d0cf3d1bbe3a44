"""SQL of an id as all its forms have it, the same as `normal_id` of Python."""

_BLANK = r"[\\s\\p{Z}\\x1C-\\x1F\\x85]+"
"""What Python takes for a space: Java's `\\s` lacks the separators of files, groups, records and
units, and the next line.
"""
_SPACE = f"^{_BLANK}|{_BLANK}$"
_DIGITS = "^[+]?0*([0-9]+)$"


def normal_id_sql(column: str) -> str:
    """Return SQL of the normal form of an id, which is text then.

    :param column: SQL of a value of any type.
    """
    text = f"regexp_replace(CAST({column} AS STRING), '{_SPACE}', '')"
    return f"regexp_replace({text}, '{_DIGITS}', '$1')"
