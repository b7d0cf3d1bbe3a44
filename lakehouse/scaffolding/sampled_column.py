"""The distinct values of a column, and the words of its name."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NOTHING = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "n.a.", "NULL", "null", "None", "NaN", "nan", "-", "--", "?"}
    | {"k.A.", "k. A."}
)
"""Words by which tools and people write that there is no value."""
EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}"
# A digit follows the first 0, or three digits after a sign, unlike in `0-6 6-3 6-2`.
PHONE = (
    r"(?:\+[0-9][0-9 ()/-]{5,17}|\([0-9][0-9 ()/-]{5,17}"
    r"|0[0-9]+[ ()/-][0-9 ()/-]{2,14}|0[ (/-]+[0-9]{3}[0-9 ()/-]{4,16})[0-9]"
)
_DATE = r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}"
_FULL_NAME = r"\pL[\pL\pM0-9_'’.-]*(?: \pL[\pL\pM0-9_'’.-]*){1,3}"
_LOOKS = {"email": EMAIL, "phone": PHONE, "full_name": _FULL_NAME}
_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")


@dataclass(frozen=True)
class ColumnProfile:
    """A column of all files that have it."""

    name: str
    file_type: str
    """Its type in files; empty in CSV, and for numbers in JSON."""
    rows: int
    values: Any
    """Distinct values without surrounding spaces, as an Arrow array."""
    counts: Any
    has_blanks: bool
    """Whether a row has spaces or an empty text, other than a missing value."""
    nothing: tuple[str, ...]
    """Words that mean that there is no value, such as `NA`."""
    has_spaces: bool
    """Whether two texts differ in surrounding spaces only."""

    @property
    def filled_rows(self) -> int:
        return pc.sum(self.counts).as_py() or 0

    @property
    def is_filled(self) -> bool:
        """Whether all rows have a value."""
        return 0 < self.filled_rows == self.rows

    @property
    def has_parts(self) -> bool:
        """Whether its values are nested or binary: it is neither a key nor personal."""
        return self.file_type.startswith(("struct", "array", "map", "binary"))

    @property
    def words(self) -> tuple[str, ...]:
        return words_of(self.name)

    def all_match(self, pattern: str) -> bool:
        """Whether there are values, and a regular expression matches each completely."""
        return len(self.values) > 0 and bool(pc.all(matches(self.values, pattern)).as_py())

    def any_match(self, pattern: str) -> bool:
        """Whether a regular expression matches a value completely."""
        return bool(pc.any(matches(self.values, pattern)).as_py())

    def matching_rows(self, pattern: str) -> int:
        """Return how many rows have a value that matches completely."""
        return pc.sum(self.counts.filter(matches(self.values, pattern))).as_py() or 0

    def count_like(self, what: str) -> int:
        """Return how many rows have such values: email, phone or full_name."""
        rows = self.matching_rows(_LOOKS[what])
        return rows - self.matching_rows(_DATE) if what == "phone" and rows else rows

    def is_mostly(self, what: str) -> bool:
        """Whether more than half of the rows have such values: email, phone or full_name."""
        return 2 * self.count_like(what) > self.filled_rows


def profile_column(name: str, file_type: str, texts: Any) -> ColumnProfile:
    """Return the profile of a column.

    :param texts: its value in each row, as an Arrow array of texts.
    """
    value_counts = pc.value_counts(texts)
    raw, counts = value_counts.field("values"), value_counts.field("counts")
    values = pc.utf8_trim_whitespace(raw)
    is_blank = matches(values, "").fill_null(False)
    is_nothing = pc.is_in(values, pa.array(sorted(NOTHING)))
    is_value = pc.and_not(pc.is_valid(values), pc.or_(is_blank, is_nothing))
    filled = values.filter(is_value)
    return ColumnProfile(
        name,
        file_type,
        rows=len(texts),
        values=filled,
        counts=counts.filter(is_value),
        has_blanks=bool(pc.any(is_blank).as_py()),
        nothing=tuple(sorted({*values.filter(is_nothing).to_pylist()})),
        has_spaces=len(pc.unique(filled)) < len(filled),
    )


def matches(values: Any, pattern: str) -> Any:
    """Return which values a regular expression matches completely."""
    return pc.match_substring_regex(values, f"^(?:{pattern})$")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of `CustomerID`, `customer_id` or `Customer Id` in lower case.

    Letters lose their marks: `Straße` and `PRÉNOM` are `strasse` and `prenom`.
    """
    parts = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    unmarked = "".join(sign for sign in parts if not unicodedata.combining(sign))
    return tuple(word.casefold() for word in _WORD.findall(unmarked))
