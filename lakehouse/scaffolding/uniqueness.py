"""Which columns, alone or two together, have no value twice: in all files, or in each by
itself.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from lakehouse.scaffolding.words import words_of

_KEY_WORDS = frozenset(
    {"id", "ids", "no", "nr", "num", "number", "nummer", "code", "key", "uuid", "guid", "sku"}
    | {"ref", "line", "position", "pos", "item", "row", "zeile"}
)
_MOST_PARTS = 5
"""Columns of which pairs are looked at: ten pairs."""
Values = Sequence[str | None]


def is_key_name(name: str) -> bool:
    """Whether a column is named as keys are, such as `order_id`, `InvoiceNo` or `id`."""
    return not _KEY_WORDS.isdisjoint(words_of(name))


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

    @property
    def in_each_file(self) -> frozenset[tuple[str, ...]]:
        """Sets of columns that are unique in each file."""
        return frozenset(self._in_file)

    @property
    def in_all_files(self) -> frozenset[tuple[str, ...]]:
        """Sets of columns that are unique in all files together."""
        return frozenset(self._in_all)

    def add(self, columns: Mapping[str, Values]) -> None:
        """Take rows of one file into account, given by column."""
        for key in list(self._in_file):
            if all(name in columns for name in key):
                self._add(key, list(zip(*(columns[name] for name in key), strict=True)))
            else:
                self._drop(key)

    def end_of_file(self) -> None:
        """No more rows of this file come."""
        for seen in self._in_file.values():
            seen.clear()

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
