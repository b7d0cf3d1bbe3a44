"""Column types of feeds as Arrow types, and values of files converted to them without loss."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.byte_source import Readable, spooled
from lakehouse.ingestion.readers.csv_header import expected_header, plan_header
from lakehouse.tables import types
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_TIME_ZONE = "UTC"
_FIRST_DAY, _DAY_AFTER_LAST = -719_162, 2_932_897
"""The days of the years 1 to 9999, relative to 1970-01-01."""
_DAY_MICROSECONDS = 86_400_000_000
UNFIT = (ValueError, TypeError, ArithmeticError, RecursionError, NotImplementedError)
"""What Arrow and Python raise for a value that does not fit, or is nested too deeply."""


def arrow_type(column_type: types.ColumnType) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(column_type, types.Decimal):
        return pa.decimal128(column_type.precision, column_type.scale)
    if isinstance(column_type, types.Struct):
        return pa.struct([(part.name, arrow_type(part.type)) for part in column_type.fields])
    if isinstance(column_type, types.Array):
        return pa.list_(arrow_type(column_type.element))
    if isinstance(column_type, types.Map):
        return pa.map_(arrow_type(column_type.key), arrow_type(column_type.value))
    primitives: dict[str, pa.DataType] = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", _TIME_ZONE),
        "timestamp_ntz": pa.timestamp("us"),
        "string": pa.string(),
        "binary": pa.binary(),
    }
    return primitives[column_type.name]


def require_declared(feed: Feed, names: Collection[str]) -> None:
    """Check that a file without a header row has at least one declared column, by bronze name."""
    if set(names).isdisjoint(feed.column_names):
        raise _rejected(
            "no declared column",
            f"{len(names)} columns, none of them declared",
            expected_header(feed),
            "Deliver a file of this feed, or correct the names of the columns.",
        )


def column_types(feed: Feed, added: Collection[str] = ()) -> "dict[str, pa.DataType]":
    """Return the Arrow type of each column of a feed; columns that a file added are text."""
    declared = {
        column.name: arrow_type(types.parse(column.type)) for column in feed.declared_columns
    }
    return declared | dict.fromkeys(added, arrow_type(types.Primitive("string")))


def declared_type(found: Any, *, is_part: bool = False) -> str:
    """Return the column type to declare for values of an Arrow type.

    A timestamp without a time zone is read in the feed's time zone, so it is a `timestamp`;
    within a struct or array it is a `timestamp_ntz`. A type that Iceberg lacks becomes text.
    """
    import pyarrow as pa

    kind, found = pa.types, _storage(found)
    if kind.is_struct(found) and found.num_fields:
        parts = (
            types.Field(part.name, types.parse(declared_type(part.type, is_part=True)))
            for part in found
        )
        return str(types.Struct(tuple(parts)))
    if _is_list(found):
        return f"array<{declared_type(found.value_type, is_part=True)}>"
    if kind.is_map(found):
        key, item = (declared_type(t, is_part=True) for t in (found.key_type, found.item_type))
        return f"map<{key},{item}>"
    if kind.is_timestamp(found):
        return "timestamp_ntz" if found.tz is None and is_part else "timestamp"
    if kind.is_decimal(found) and found.precision <= types.WIDEST:
        return f"decimal({found.precision},{found.scale})"
    if kind.is_integer(found):
        small = found.bit_width < 32 or found == pa.int32()
        return "decimal(20,0)" if found == pa.uint64() else "int" if small else "bigint"
    names: list[tuple[Callable[[Any], bool], str]] = [
        (kind.is_boolean, "boolean"),
        (kind.is_float64, "double"),
        (kind.is_floating, "float"),
        (kind.is_date, "date"),
        (_is_binary, "binary"),
    ]
    return next((name for fits, name in names if fits(found)), "string")


def reject_damaged_file(kind: str, read: Callable[[], T]) -> T:
    """Call a function and reject the file if it is damaged; system errors are raised.

    :param kind: the name of its format.
    """
    try:
        return read()
    except (FileRejected, MemoryError):
        raise
    except Exception as error:
        # The readers raise arbitrary exceptions for damaged files.
        if isinstance(error, OSError) and error.errno is not None:
            raise
    # Raised outside of the handler: the original error may contain a value.
    found = "one that is damaged, cut off or encrypted, or has a type or codec that is not read"
    raise unreadable(kind, found)


def unreadable(kind: str, found: str) -> FileRejected:
    return _rejected(
        f"not a readable {kind} file",
        found,
        f"a complete {kind} file, as its name says",
        "Write the file again and put it back.",
    )


class TypedReader(ABC):
    """Reads a file whose columns have types of their own, from a temporary copy."""

    def __init__(self, feed: Feed, content: Readable, *, use_threads: bool) -> None:
        self._feed = feed
        self._use_threads = use_threads
        with ExitStack() as stack:
            fields = self.open(stack.enter_context(spooled(content)))
            names = feed.named(fields)
            require_declared(feed, names)
            self.header = plan_header(feed, names)
            in_file = dict(zip(names, fields, strict=True))
            self._fields = [in_file[name] for name in self.header.columns]
            # Closed with the last batch.
            self._opened = stack.pop_all()

    @abstractmethod
    def open(self, copy: IO[bytes]) -> list[str]:
        """Open a seekable file, and return its columns."""

    @abstractmethod
    def read(self, fields: list[str]) -> "Iterator[list[pa.Array[Any]]]":
        """Yield the values of some columns, in batches."""

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in order."""
        import pyarrow as pa

        names = self.header.columns
        targets = column_types(self._feed, self.header.added)
        first_row = 1
        with self._opened:
            for columns in self.read(self._fields):
                arrays = [
                    convert_column(self._feed, name, column, targets[name], first_row)
                    for name, column in zip(names, columns, strict=True)
                ]
                batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
                first_row += batch.num_rows
                if batch.num_rows:
                    yield batch


def convert_column(
    feed: Feed, name: str, column: "pa.Array[Any]", target: "pa.DataType", first_row: int
) -> "pa.Array[Any]":
    """Return values as the declared type; `first_row` is the row number of the first one."""

    column = plain_values(column)
    if not _is_compatible(column.type, target):
        raise _rejected(
            "another type",
            f"column {quoted(name)} of type {column.type}",
            f"values of type {_declared(feed, name)}",
            f'Declare FeedColumn({name!r}, type="{declared_type(column.type)}"), or deliver that'
            " type.",
        )
    try:
        return converted_in_calendar(feed, column, target)
    except UNFIT:
        row = first_row + _first_failing(feed, column, target)
    raise _rejected(
        "a value that does not fit",
        f"a value in column {quoted(name)} of type {column.type} in row {row} that does not fit",
        f"values of type {_declared(feed, name)}",
        f'Declare a wider type for {name}, or type="string" for its text.',
    )


def text_of(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return values as text: timestamps as ISO 8601, nested values and binary as JSON."""
    import pyarrow as pa

    column = plain_values(column)
    if pa.types.is_nested(column.type):
        values = column.to_pylist(maps_as_pydicts="lossy")
        return pa.array([v if v is None else json_text(v) for v in values], pa.string())
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.array([v if v is None else str(v) for v in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def json_text(value: Any) -> str:
    """Return a nested value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain_json)


def with_texts(batch: "pa.RecordBatch", names: Iterable[str]) -> "pa.RecordBatch":
    """Return a batch in which some columns, where it has them, are text."""
    import pyarrow as pa

    for at, field in enumerate(batch.schema):
        if field.name in names and field.type != pa.string():
            batch = batch.set_column(at, field.name, text_of(batch.column(at)))
    return batch


def plain_values(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return a column without a dictionary and without an extension type other than UUID."""
    import pyarrow as pa

    while not isinstance(column, pa.Array) or pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # type: ignore[attr-defined]
    if isinstance(column, pa.ExtensionArray) and not isinstance(column.type, pa.UuidType):
        storage: pa.Array[Any] = column.storage
        return storage
    return column


def _storage(found: Any) -> Any:
    """Return the type of the values behind a dictionary or an extension type."""
    import pyarrow as pa

    if isinstance(found, pa.DictionaryType):
        return _storage(found.value_type)
    if isinstance(found, pa.BaseExtensionType) and not isinstance(found, pa.UuidType):
        return _storage(found.storage_type)
    return found


def _is_list(found: Any) -> bool:
    import pyarrow as pa

    kind = pa.types
    return kind.is_list(found) or kind.is_large_list(found) or kind.is_fixed_size_list(found)


def _is_binary(found: Any) -> bool:
    import pyarrow as pa

    kind = pa.types
    tests = (kind.is_binary, kind.is_large_binary, kind.is_binary_view)
    return any(fits(found) for fits in tests) or kind.is_fixed_size_binary(found)


def _is_compatible(found: Any, target: Any, *, is_part: bool = False) -> bool:
    """Return whether a file's type fits a declared type; individual values may still not fit."""
    import pyarrow as pa

    kind, found = pa.types, _storage(found)
    if kind.is_null(found) or found == target:
        return True
    if kind.is_struct(target):
        parts = {part.name: part.type for part in found} if kind.is_struct(found) else {}
        return (
            bool(parts)
            and len(parts) == found.num_fields
            and set(parts) <= {part.name for part in target}
            and all(
                _is_compatible(parts[part.name], part.type, is_part=True)
                for part in target
                if part.name in parts
            )
        )
    if kind.is_list(target):
        return _is_list(found) and _is_compatible(
            found.value_type, target.value_type, is_part=True
        )
    if kind.is_map(target):
        return kind.is_map(found) and all(
            _is_compatible(getattr(found, part), getattr(target, part), is_part=True)
            for part in ("key_type", "item_type")
        )
    if kind.is_string(target):
        return not (is_part and (kind.is_nested(found) or isinstance(found, pa.UuidType)))
    if kind.is_timestamp(target):
        if kind.is_timestamp(found):
            is_same = (found.tz is None) == (target.tz is None)
            return is_same or (target.tz is not None and not is_part)
        return kind.is_date(found) and not is_part
    is_number = kind.is_integer(found) or kind.is_decimal(found) or kind.is_floating(found)
    if kind.is_integer(target) or kind.is_floating(target) or kind.is_decimal(target):
        is_exact = kind.is_integer(found) or found == target or kind.is_floating(target)
        return is_number and (is_exact or not is_part)
    if kind.is_date(target):
        return kind.is_date(found)
    return kind.is_binary(target) and _is_binary(found)


def converted_in_calendar(feed: Feed, column: Any, target: Any) -> "pa.Array[Any]":
    """Convert values; raise outside of the years 1 to 9999, which Python cannot represent."""
    import pyarrow as pa
    import pyarrow.compute as pc

    converted: pa.Array[Any] = _converted(feed, column, target)
    is_date = pa.types.is_date(target)
    if is_date or pa.types.is_timestamp(target):
        unit = 1 if is_date else _DAY_MICROSECONDS
        days: Any = pc.min_max(converted.cast(pa.int32() if is_date else pa.int64()))
        low, high = (days[bound].as_py() or 0 for bound in ("min", "max"))
        if low < _FIRST_DAY * unit or high >= _DAY_AFTER_LAST * unit:
            raise pa.ArrowInvalid("calendar")
    # Parquet files can have text that is not UTF-8.
    converted.validate(full=True)
    return converted


def _converted(feed: Feed, column: Any, target: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, found = pa.types, column.type
    if found == target:
        return column
    if kind.is_string(target):
        return text_of(column)
    if kind.is_timestamp(target) and target.tz and not getattr(found, "tz", None):
        wall_time = column.cast(pa.timestamp("us"))
        return pc.assume_timezone(
            wall_time, feed.time_zone, ambiguous="earliest", nonexistent="latest"
        ).cast(target)
    converted = column.cast(target)
    if kind.is_floating(found) and not kind.is_nested(target) and found != pa.float16():
        # Arrow rounds floating-point values.
        is_same = pc.equal(converted.cast(found), column)
        if not pc.all(pc.or_kleene(is_same, pc.is_nan(column))).as_py() and len(column):
            raise pa.ArrowInvalid("rounded")
    return converted


def _first_failing(feed: Feed, column: Any, target: Any) -> int:
    """Return the position of the first value that cannot be converted."""

    for place in range(len(column)):
        try:
            converted_in_calendar(feed, column.slice(place, 1), target)
        except UNFIT:
            return place
    return 0


def _declared(feed: Feed, name: str) -> str:
    return next((c.type for c in feed.declared_columns if c.name == name), "string")


def _plain_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _rejected(reason: str, found: str, expected: str, next_step: str) -> FileRejected:
    return FileRejected(reason, found=found, expected=expected, next_step=next_step)
