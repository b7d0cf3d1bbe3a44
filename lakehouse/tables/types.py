"""Column types in Spark's notation, parsed without a JVM.

Aliases are resolved (`integer` is `int`, `long` is `bigint`), so that equal types compare
equal.
"""

import re
from dataclasses import dataclass

from lakehouse.errors import DeclarationError
from lakehouse.tables.quoting import identifier, json_of

_ALIASES = {
    "integer": "int",
    "long": "bigint",
    "timestamp_ltz": "timestamp",
    "real": "float",
    "numeric": "decimal",
}
_PRIMITIVES = frozenset(
    {
        "boolean",
        "int",
        "bigint",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "binary",
    }
)
INTEGER_TYPES = frozenset({"int", "bigint"})
WIDEST = 38
"""The maximum number of digits of a decimal."""
_TOKEN = re.compile(
    r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|'(?P<text>(?:[^'\\]|\\.)*)'|(?P<mark>[<>(),:]))"
)


@dataclass(frozen=True)
class Primitive:
    """A primitive type, such as `bigint`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Decimal:
    """A fixed-point number with `precision` digits, `scale` of them after the decimal point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Field:
    """A named field of a struct."""

    name: str
    type: "ColumnType"

    def __str__(self) -> str:
        is_plain = self.name.isascii() and self.name.isidentifier()
        return f"{self.name if is_plain else identifier(self.name)}:{self.type}"


@dataclass(frozen=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{','.join(map(str, self.fields))}>"


@dataclass(frozen=True)
class Array:
    """A list of elements of one type."""

    element: "ColumnType"

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True)
class Map:
    """A mapping from keys of one type to values of another."""

    key: "ColumnType"
    value: "ColumnType"

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


ColumnType = Primitive | Decimal | Struct | Array | Map


def parse(text: str) -> ColumnType:
    """Parse a type such as `decimal(10,2)` or `struct<a:int,b:array<string>>`.

    :raises DeclarationError: states the text and the known types.
    """
    tokens = _Tokens(text)
    parsed = tokens.read_type()
    if tokens.rest:
        raise tokens.error()
    return parsed


class _Tokens:
    """The tokens of a type, read in order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rest: list[str] = []
        at, stripped = 0, text.strip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if not match:
                raise self.error()
            quoted = (match["quoted"] or "").replace("``", "`")
            self.rest.append(match["word"] or quoted or match["mark"] or "")
            at = match.end()

    def error(self) -> DeclarationError:
        known = ", ".join(sorted(_PRIMITIVES))
        return DeclarationError(
            f"{self.text!r} is not a column type; expected {known}, decimal(p,s), array<…>,"
            " map<…,…> or struct<name:…>.",
        )

    def next_token(self, *expected: str) -> str:
        if not self.rest or (expected and self.rest[0] not in expected):
            raise self.error()
        return self.rest.pop(0)

    def read_type(self) -> ColumnType:
        word = self.next_token().lower()
        word = _ALIASES.get(word, word)
        if word in _PRIMITIVES:
            return Primitive(word)
        if word == "decimal":
            return self._decimal()
        if word not in ("array", "map", "struct"):
            raise self.error()
        self.next_token("<")
        if word == "struct":
            return self._struct()
        first = self.read_type()
        if word == "array":
            self.next_token(">")
            return Array(first)
        self.next_token(",")
        value = self.read_type()
        self.next_token(">")
        return Map(first, value)

    def _decimal(self) -> Decimal:
        if self.rest[:1] != ["("]:
            return Decimal(10, 0)
        self.next_token("(")
        precision, scale = self._number(), 0
        if self.next_token(",", ")") == ",":
            scale = self._number()
            self.next_token(")")
        if not 1 <= precision <= WIDEST or scale > precision:
            raise self.error()
        return Decimal(precision, scale)

    def _number(self) -> int:
        word = self.next_token()
        if not word.isdigit():
            raise self.error()
        return int(word)

    def _struct(self) -> Struct:
        fields: list[Field] = []
        mark = ","
        while mark == ",":
            name = self.next_token()
            self.next_token(":")
            fields.append(Field(name, self.read_type()))
            mark = self.next_token(",", ">")
        return Struct(tuple(fields))


def is_nested(column_type: ColumnType) -> bool:
    """Return whether a type is a struct, an array or a map."""
    return isinstance(column_type, (Struct, Array, Map))


def has_map(column_type: ColumnType) -> bool:
    """Return whether a type contains a map; Spark cannot compare maps."""
    if isinstance(column_type, Map):
        return True
    if isinstance(column_type, Array):
        return has_map(column_type.element)
    return isinstance(column_type, Struct) and any(
        has_map(part.type) for part in column_type.fields
    )


def comparable_sql(column_type: ColumnType, value: str) -> str:
    """Return SQL that is equal for equal values of a type, even if it contains a map."""
    if not has_map(column_type):
        return value
    if isinstance(column_type, Map) and not has_map(column_type.value):
        return f"array_sort(map_entries({value}))"
    return json_of(value)
