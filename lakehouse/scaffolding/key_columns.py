"""The columns that identify a row, by their names and values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow.compute as pc

from lakehouse.scaffolding.sampled_column import word_set, words_of

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
    """The columns of the key; empty if each delivered line is a row.

    `repeated` is a key of each file whose values occur again in other files. `replaced_rows` is
    the number of rows that a merge by it would replace by rows with other values.
    """

    columns: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    replaced_rows: int = 0
    nearest: tuple[str, ...] = ()
    nearest_repeated_rows: int = 0

    @property
    def added(self) -> str:
        """The column that distinguishes rows with the same `repeated` key; empty if none."""
        return self.columns[-1] if len(self.columns) > len(self.repeated) > 0 else ""


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
    texts: Any,
    file_number: str,
    fitting: Sequence[str],
    days: Sequence[str],
    change: str | None,
) -> KeyGuess:
    """Guess the key of rows.

    :param texts: the rows, as an Arrow table of texts.
    :param file_number: the column with the number of the file of each row.
    :param fitting: the columns that can be part of a key.
    :param days: columns with the day of a row, which can be part of a key too.
    :param change: the column with the time at which the source changed the row, if any.
    """
    named = [name for name in fitting if is_key_name(name)]
    pairs = list(combinations(named[:_MAX_NAMED], 2))
    rows = texts.num_rows
    distinct: dict[tuple[str, ...], int] = {}
    for key in [*((name,) for name in named), *pairs]:
        distinct[key] = _count(texts.select(list(key)).drop_null(), key)
        if distinct[key] == rows > 1:
            return KeyGuess(key)
    if rows >= _MIN_ROWS_PER_FILE * len(pc.unique(texts[file_number])):
        for key in distinct:
            if (
                _count(texts.select([*key, file_number]).drop_null(), (*key, file_number))
                == rows
            ):
                return _repeated_key(texts, file_number, key, days, change)
    if rows < 2 or not distinct:
        return KeyGuess()
    nearest = max(distinct, key=lambda key: (distinct[key], -len(key)))
    return KeyGuess(nearest=nearest, nearest_repeated_rows=rows - distinct[nearest])


def _repeated_key(
    texts: Any, file_number: str, key: tuple[str, ...], days: Sequence[str], change: str | None
) -> KeyGuess:
    """Return a key by which no row replaces a row with other values, unless it is a change."""
    keys = _count(texts, key)
    replaced = texts.num_rows - repeated_rows(texts, file_number) - keys
    if not replaced:
        return KeyGuess(key, key)
    files = len(pc.unique(texts[file_number]))
    # In a series such as daily measurements, most files have other values of most keys.
    is_change = change is not None and 2 * replaced <= keys * (files - 1)
    for name in days:
        is_version = is_change and name == change
        if not is_version and _count(texts, (*key, name)) == texts.num_rows:
            return KeyGuess((*key, name), key, replaced)
    return KeyGuess(key if is_change else (), key, replaced)


def repeated_rows(texts: Any, file_number: str) -> int:
    """Return how many rows equal a previous row in all columns."""
    names = [name for name in texts.column_names if name != file_number]
    return int(texts.num_rows - _count(texts, names))


def _count(texts: Any, names: Sequence[str]) -> int:
    """Return how many distinct values some columns have together."""
    return int(texts.group_by(list(names)).aggregate([]).num_rows)
