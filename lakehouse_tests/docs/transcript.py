"""Comparing what a command printed with what a page shows.

Runs of blanks and of dashes count as one, since the width of a column follows from its values.
`…` stands for any text within a line. A snapshot id or a moment in the page stands for the one
that was printed in its place: it is remembered, and later commands of the page are run with the
real one.
"""

import re

_VOLATILE = re.compile(r"\d{15,19}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_VOLATILE_PATTERN = r"(\d{1,19}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
_PIECE = re.compile(rf"(…|{_VOLATILE.pattern})")


class Transcript:
    """The ids and moments of a page, and the real ones that they stand for."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def real(self, command: str) -> str:
        """Return a command of the page with the real ids and moments in it."""
        return _VOLATILE.sub(lambda match: self._real.get(match[0], match[0]), command)

    def compare(self, expected: str, printed: str) -> None:
        """Fail where what was printed is not what the page shows."""
        wanted, found = _lines(expected), _lines(printed)
        assert len(wanted) == len(found), printed
        for line, real in zip(wanted, found, strict=True):
            self._compare_line(line, real)

    def _compare_line(self, expected: str, printed: str) -> None:
        shown = [piece for piece in _PIECE.findall(expected) if piece != "…"]
        match = re.fullmatch("".join(map(_pattern, _PIECE.split(expected))), printed)
        assert match, f"\nthe page shows: {expected}\nprinted was:    {printed}"
        for one, real in zip(shown, match.groups(), strict=True):
            assert self._real.setdefault(one, real) == real, (
                f"{one} stood for {self._real[one]}, and is now {real}"
            )


def _pattern(piece: str) -> str:
    if piece == "…":
        return ".*"
    return _VOLATILE_PATTERN if _VOLATILE.fullmatch(piece) else re.escape(piece)


def _lines(text: str) -> list[str]:
    lines = (
        re.sub(r"-{2,}", "--", re.sub(r" +", " ", line)).strip() for line in text.splitlines()
    )
    return [line for line in lines if line]
