"""Which columns of files that were looked at are the key of a row; where several files have a key
again, what loses no row of them.
"""

from dataclasses import dataclass

from lakehouse.scaffolding.inspect_files import Inspection
from lakehouse.scaffolding.key_columns import first_key, holds_keys
from lakehouse.scaffolding.repeated_keys import RepeatedKey
from lakehouse.scaffolding.uniqueness import NearKey
from lakehouse.scaffolding.words import words_of

_CHANGE_WORDS = frozenset({"updated", "modified", "changed", "written"})
"""By these a moment says that a row took the place of what was there before."""


@dataclass(frozen=True)
class ChosenKey:
    """The columns of the key, by their names in the files; none where each delivered line is a
    row.
    """

    columns: tuple[str, ...] = ()
    repeated: RepeatedKey | None = None
    """What files have once each and again in others, where that was looked at."""
    near: NearKey | None = None
    """Where there is no key, the columns that come nearest to one."""

    @property
    def is_repeated(self) -> bool:
        """Whether the key comes again in another file, as another version."""
        return self.repeated is not None and self.columns == self.repeated.columns

    @property
    def beside(self) -> str:
        """The column that tells apart what comes again in another file; "" where there is
        none.
        """
        is_dated = self.repeated is not None and len(self.columns) > len(self.repeated.columns)
        return self.columns[-1] if is_dated else ""


def choose_key(found: Inspection, moment: str | None) -> ChosenKey:
    """Choose the key.

    :param moment: the column that says when the source wrote a row, where there is one.
    """
    if key := first_key(found.columns, found.rows, found.unique_in_all):
        return ChosenKey(key)
    repeated = found.repeated_key
    if repeated is None:
        return ChosenKey(near=_near_key(found))
    return ChosenKey(_without_loss(found, repeated, moment), repeated)


def _without_loss(
    found: Inspection, repeated: RepeatedKey, moment: str | None
) -> tuple[str, ...]:
    """Return the key by which no row of a file takes the place of another's with other values,
    unless that says itself that it does; nothing where there is none.
    """
    if not repeated.replaced_rows:
        return repeated.columns
    has_changes = moment is not None and not _CHANGE_WORDS.isdisjoint(words_of(moment))
    is_series = repeated.comes_anew_in_most(len(found.files))
    for beside in repeated.unique_with:
        if beside != moment or is_series or not has_changes:
            return (*repeated.columns, beside)
    return repeated.columns if has_changes and not is_series else ()


def _near_key(found: Inspection) -> NearKey | None:
    """Return the columns that come nearest to a key, few before many."""
    fitting = [
        near
        for near in found.near_keys
        if all(holds_keys(found.columns[part]) for part in near.columns)
    ]
    return min(fitting, key=lambda near: (near.repeated_rows, len(near.columns)), default=None)
