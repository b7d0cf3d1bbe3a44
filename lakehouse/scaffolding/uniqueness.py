"""Which columns, alone or two together, have no value twice: in all files, or in each by
itself.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, repeat

from lakehouse.scaffolding.words import words_of

_KEY_WORDS = frozenset(
    {"id", "ids", "no", "nr", "num", "number", "nummer", "code", "key", "uuid", "guid", "sku"}
    | {"ref", "line", "position", "pos", "item", "row", "zeile"}
    | {"kennung", "numero", "nro", "numer", "codigo", "codice", "identifiant", "clave"}
)
_FIRST_KEY_WORDS = frozenset(
    {"id", "uuid", "guid", "numero", "nro", "code", "codigo", "codice", "clave", "identifiant"}
)
_KEY_ENDINGS = ("nummer", "kennung", "nr")
"""What German words end in that are named as keys, such as `Bestellnummer`."""
_THINGS = frozenset(
    {
        "account",
        "book",
        "client",
        "customer",
        "device",
        "employee",
        "event",
        "flight",
        "invoice",
    }
    | {"item", "line", "member", "movie", "order", "patient", "payment", "person", "product"}
    | {"row", "session", "shop", "station", "store", "supplier", "transaction", "trip", "user"}
)
"""Of what a name in one word is a key, as `orderid`; other words that end so, as `paid`, are
none.
"""
_MOST_PARTS = 5
"""Columns of which pairs are looked at: ten pairs."""
_MOST_COUNTED = 100_000
"""Rows of which it is counted how many have the same key as another."""
Values = Sequence[str | None]


@dataclass(frozen=True)
class NearKey:
    """Columns that are named as keys are, and in how many of the rows looked at they tell a row
    from no other: it has what another has, or nothing in one of them.
    """

    columns: tuple[str, ...]
    rows: int
    repeated_rows: int


def is_key_name(name: str) -> bool:
    """Whether a column is named as keys are: by its last word, such as `order_id` and
    `InvoiceNo`, or as in Romance languages by its first, such as `codigo_cliente`.

    In between a word tells nothing: `votes_no_advance` has no number, nor has `number_of_laps`.
    """
    words = words_of(name)
    if not words:
        return False
    # A number of a kind, such as `order_id_2` or `line_1`.
    *_, last = [word for word in words if not word.isdecimal()] or words
    return _is_key_word(last) or words[0] in _FIRST_KEY_WORDS


def _is_key_word(word: str) -> bool:
    is_joined = word.endswith("id") and word.removesuffix("id") in _THINGS
    return word in _KEY_WORDS or is_joined or word.endswith(_KEY_ENDINGS)


class Uniqueness:
    """The sets of columns of which no two rows have had the same values so far.

    Of each value of such a set a hash is kept, eight bytes; a set is dropped at the first value
    that a file has twice, so that few are kept for long. Two values of one hash would count as
    equal, once in some ten million files of a million rows.
    """

    def __init__(self, names: Sequence[str]) -> None:
        parts = [name for name in names if is_key_name(name)][:_MOST_PARTS]
        candidates = [*((name,) for name in names), *combinations(parts, 2)]
        self._in_file: dict[tuple[str, ...], set[int]] = {key: set() for key in candidates}
        self._in_all: dict[tuple[str, ...], set[int]] = {key: set() for key in candidates}
        named = [*((name,) for name in parts), *combinations(parts, 2)]
        self._counted: dict[tuple[str, ...], array[int]] = {key: array("q") for key in named}
        self._counted_rows = 0
        self._names = tuple(names)
        self._whole_rows: array[int] = array("q")

    @property
    def in_each_file(self) -> frozenset[tuple[str, ...]]:
        """Sets of columns that are unique in each file."""
        return frozenset(self._in_file)

    @property
    def in_all_files(self) -> frozenset[tuple[str, ...]]:
        """Sets of columns that are unique in all files together."""
        return frozenset(self._in_all)

    @property
    def repeated_rows(self) -> tuple[int, int]:
        """How many of the first rows have in all columns what one before them has, and how many
        were looked at.
        """
        rows = len(self._whole_rows)
        return rows - len(set(self._whole_rows)), rows

    @property
    def near_keys(self) -> tuple[NearKey, ...]:
        """How near to a key those columns come that are named so, and that each file has; by the
        first rows.
        """
        rows = self._counted_rows
        return tuple(
            NearKey(key, rows, rows - len(set(hashes))) for key, hashes in self._counted.items()
        )

    def add(self, columns: Mapping[str, Values]) -> None:
        """Take rows of one file into account, given by column."""
        for key in list(self._in_file):
            if all(name in columns for name in key):
                self._add(key, list(zip(*(columns[name] for name in key), strict=True)))
            else:
                self._drop(key)
        self._count(columns)

    def end_of_file(self) -> None:
        """No more rows of this file come."""
        for seen in self._in_file.values():
            seen.clear()

    def _count(self, columns: Mapping[str, Values]) -> None:
        """Keep a hash of each key of the first rows; none of one with gaps, which is no key."""
        most = _MOST_COUNTED - self._counted_rows
        for key, hashes in list(self._counted.items()):
            if not all(name in columns for name in key):
                del self._counted[key]
                continue
            values = islice(zip(*(columns[name] for name in key), strict=True), most)
            hashes.extend(hash(value) for value in values if None not in value)
        whole = (columns.get(name, repeat(None)) for name in self._names)
        count = min(most, max((len(values) for values in columns.values()), default=0))
        self._whole_rows.extend(hash(row) for row in islice(zip(*whole, strict=False), count))
        self._counted_rows += count

    def _add(self, key: tuple[str, ...], values: Sequence[tuple[str | None, ...]]) -> None:
        hashes = {hash(value) for value in values}
        seen = self._in_file[key]
        has_gaps = any(None in value for value in values)
        if has_gaps or len(hashes) < len(values) or not seen.isdisjoint(hashes):
            self._drop(key)
            return
        seen |= hashes
        self._add_to_all(key, hashes)

    def _add_to_all(self, key: tuple[str, ...], hashes: set[int]) -> None:
        seen = self._in_all.get(key)
        if seen is None:
            return
        if seen.isdisjoint(hashes):
            seen |= hashes
        else:
            del self._in_all[key]

    def _drop(self, key: tuple[str, ...]) -> None:
        del self._in_file[key]
        self._in_all.pop(key, None)
