"""Which of several unique sets of columns is named and filled as the key of a row is."""

from collections.abc import Collection, Mapping

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.people import why_personal
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.values import NUMBERS


def first_key(
    columns: Mapping[str, ColumnProfile], rows: int, unique: Collection[tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the columns that are named as keys are, and unique; few columns before many, and in
    the order of the files.

    Amounts, moments and addresses may be unique by chance.
    """
    order = list(columns)
    fitting = [
        key
        for key in unique
        if all(is_key_name(part) and _can_be_key(columns[part]) for part in key)
    ]
    if not fitting or rows < 2:
        return ()
    return min(fitting, key=lambda key: (len(key), [order.index(part) for part in key]))


def _can_be_key(profile: ColumnProfile) -> bool:
    # As text, `NA` may be a code like any other.
    has_gaps = profile.empty_rows or (profile.nothing and profile.only(NUMBERS))
    return not has_gaps and not profile.dates and holds_keys(profile)


def holds_keys(profile: ColumnProfile) -> bool:
    """Whether its values may be those of keys; numbers with decimals are measures or amounts."""
    has_decimals = bool(profile.forms.keys() & (NUMBERS - {"whole"}))
    is_whole = profile.is_whole or not has_decimals
    return is_whole and not (why_personal(profile) or profile.has_parts)
