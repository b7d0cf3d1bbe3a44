"""The columns that identify a row, by their names and values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lakehouse.scaffolding.sampled_column import word_set, words_of
from lakehouse.scaffolding.samples import FILE_NUMBER

_KEY_WORDS = word_set(
    "id ids no nr num number nummer code key uuid guid sku ref line position pos item row zeile"
    " kennung numero nro numer codigo codice identifiant clave"
)
_FIRST_KEY_WORDS = word_set("id uuid guid numero nro code codigo codice clave identifiant")
_KEY_ENDINGS = ("nummer", "kennung", "nr")
"""German words with these endings are named as keys, such as `Bestellnummer`."""
_THINGS = word_set(
    "account book client customer device employee event flight invoice item line member movie"
    " order patient payment person product row session shop station store supplier transaction"
    " trip user"
)
"""A name in one word, such as `orderid`, is a key of these; `paid` is none."""
_MAX_NAMED = 5
"""Columns of which pairs are tried: ten pairs."""
_MIN_ROWS_PER_FILE = 10
"""In files of fewer rows, values are often unique by chance."""


@dataclass(frozen=True)
class KeyGuess:
    """The columns of the key; empty if each delivered line is a row."""

    columns: tuple[str, ...] = ()
    is_repeated: bool = False
    """Whether its values occur once in a file and again in other files."""
    replaced_rows: int = 0
    """The rows that a merge by it replaces by rows with other values."""
    nearest: tuple[str, ...] = ()
    """Without a key, the columns that distinguish most rows."""
    nearest_repeated_rows: int = 0


def is_key_name(name: str) -> bool:
    """Whether a column is named as a key: by its last word, such as `order_id` and `InvoiceNo`,
    or as in Romance languages by its first, such as `codigo_cliente`.
    """
    words = words_of(name)
    if not words:
        return False
    # A number can follow, such as `order_id_2`.
    *_, last = [word for word in words if not word.isdecimal()] or words
    is_joined = last.endswith("id") and last.removesuffix("id") in _THINGS
    is_key = last in _KEY_WORDS or is_joined or last.endswith(_KEY_ENDINGS)
    return is_key or words[0] in _FIRST_KEY_WORDS


def guess_key(
    texts: Any, fitting: Sequence[str], days: Sequence[str], change: str | None
) -> KeyGuess:
    """Guess the key of rows.

    :param texts: the rows, as an Arrow table of texts.
    :param fitting: the columns that can be part of a key.
    :param days: columns with the day of a row, which can be part of a key too.
    :param change: the column with the time at which the source changed the row, if any.
    """
    rows = texts.num_rows
    named = [name for name in fitting if is_key_name(name)]
    keys = [*((name,) for name in named), *combinations(named[:_MAX_NAMED], 2)]
    if rows < 2 or not keys:
        return KeyGuess()
    distinct = {key: _filled(texts, key) for key in keys}
    if unique := [key for key in keys if distinct[key] == rows]:
        return KeyGuess(unique[0])
    files = _count(texts, [FILE_NUMBER])
    by_file = [key for key in keys if _filled(texts, (*key, FILE_NUMBER)) == rows]
    if not by_file or rows < _MIN_ROWS_PER_FILE * files:
        nearest = max(keys, key=lambda key: (distinct[key], -len(key)))
        return KeyGuess(nearest=nearest, nearest_repeated_rows=rows - distinct[nearest])
    key = by_file[0]
    # Rows that equal another row in all columns are not replaced by other values.
    replaced = (
        _count(texts, [c for c in texts.column_names if c != FILE_NUMBER]) - distinct[key]
    )
    # In a series such as daily measurements, most files have other values of most keys.
    is_change = change is not None and 2 * replaced <= distinct[key] * (files - 1)
    for name in days:
        is_version = is_change and name == change
        if replaced and not is_version and _count(texts, (*key, name)) == rows:
            return KeyGuess((*key, name))
    if replaced and not is_change:
        return KeyGuess(nearest=key, nearest_repeated_rows=rows - distinct[key])
    return KeyGuess(key, is_repeated=True, replaced_rows=replaced)


def _filled(texts: Any, names: Sequence[str]) -> int:
    """Return how many distinct values some columns have together, without gaps."""
    return _count(texts.select(list(names)).drop_null(), names)


def _count(texts: Any, names: Sequence[str]) -> int:
    """Return how many distinct values some columns have together."""
    return int(texts.group_by(list(names)).aggregate([]).num_rows)
