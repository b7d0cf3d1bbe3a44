"""Keys that no file has twice, and that come again in other files: how many rows one of the same
key would replace, and which column beside the key tells all of them apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

Values = Sequence[str | None]


@dataclass(frozen=True)
class RepeatedKey:
    """What comes of a key over all files, in the order in which they were looked at."""

    columns: tuple[str, ...]
    keys: int
    """Different ones."""
    rows: int
    replaced_rows: int
    """Rows after which one of the same key comes with other values."""
    unique_with: tuple[str, ...] = ()
    """Columns of which each tells all rows apart, beside the key."""

    def comes_anew_in_most(self, files: int) -> bool:
        """Whether most keys have other values in most files, as where each file is a day's."""
        return 2 * self.replaced_rows > self.keys * (files - 1)


class KeyRepeats:
    """Rows by a key as they come.

    Of each key that there is two hashes are kept, and of each row one for each column beside it,
    until that tells two rows not apart.
    """

    def __init__(
        self, key: tuple[str, ...], beside: Iterable[str], names: Sequence[str]
    ) -> None:
        self._key = key
        self._names = tuple(names)
        self._last: dict[int, int] = {}
        self._with: dict[str, set[int]] = {name: set() for name in beside}
        self._rows = self._replaced = 0

    def add(self, columns: Mapping[str, Values]) -> None:
        """Take rows into account, given by column."""
        count = max((len(values) for values in columns.values()), default=0)
        keys = [hash(key) for key in _rows(columns, self._key, count)]
        for key, row in zip(keys, _rows(columns, self._names, count), strict=True):
            values = hash(row)
            self._replaced += self._last.get(key, values) != values
            self._last[key] = values
        for name in list(self._with):
            self._add_with(name, list(_rows(columns, (*self._key, name), count)))
        self._rows += count

    def _add_with(self, name: str, rows: Sequence[tuple[str | None, ...]]) -> None:
        hashes = set(map(hash, rows))
        seen = self._with[name]
        if len(hashes) < len(rows) or not seen.isdisjoint(hashes):
            del self._with[name]
        else:
            seen |= hashes

    @property
    def found(self) -> RepeatedKey:
        """What came of the key so far."""
        return RepeatedKey(
            self._key, len(self._last), self._rows, self._replaced, tuple(self._with)
        )


def _rows(
    columns: Mapping[str, Values], names: Iterable[str], count: int
) -> Iterator[tuple[str | None, ...]]:
    values = (columns.get(name) or repeat(None, count) for name in names)
    return zip(*values, strict=True)
