"""The tree of errors in the docstring is the one that there is."""

import pytest

from lakehouse import errors

pytestmark = pytest.mark.unit
_LEVEL = 4
"""Characters that a line of the tree is indented by, a level."""


def drawn() -> list[tuple[int, str, str]]:
    """Return the depth, name and meaning of each error in the docstring."""
    lines = []
    for line in (errors.__doc__ or "").splitlines():
        name, _, meaning = line.strip("│├└─ ").partition(" ")
        if line.startswith(" ") and name:
            lines.append((line.index(name) // _LEVEL, name, meaning.strip()))
    return lines


def there(error: type[errors.LakehouseError], depth: int = 1) -> list[tuple[int, str]]:
    """Return the depth and name of an error, and of those below it in their order."""
    lines = [(depth, error.__name__)]
    for below in error.__subclasses__():
        if below.__module__ == errors.__name__:
            lines += there(below, depth + 1)
    return lines


def test_the_tree_has_each_error_below_its_own() -> None:
    assert [line[:2] for line in drawn()] == there(errors.LakehouseError)


def test_the_tree_says_what_each_error_says() -> None:
    for _, name, meaning in drawn()[1:]:
        says = (getattr(errors, name).__doc__ or "").partition("\n\n")[0]
        meaning = meaning.removesuffix(" (exit code 2)")
        assert says.lower() == f"{meaning.lower()}.", name
