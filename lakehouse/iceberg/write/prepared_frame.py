"""Candidate rows of a write, checked by column name, cast, and split by the rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.metadata.type_conversion import of_spark, widened
from lakehouse.iceberg.rules.rows import RowRule
from lakehouse.iceberg.write.rejected_row_keys import each_once, row_key_sql
from lakehouse.iceberg.write.write_attempt import with_fitting_rules
from lakehouse.tables import types
from lakehouse.tables.casts import is_timestamp_sql
from lakehouse.tables.masking import READABLE
from lakehouse.tables.quoting import identifier, json_of, literal
from lakehouse.tables.rows_of import names_of_machine
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable, Merge
from lakehouse.tables.type_promotion import always_fits, is_exact, is_wider

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED = "_deleted"
"""An additional column in the DataFrame of a merge: true to delete the row with that key."""
_DELIVERED = "__delivered__"
_FLOATING = (types.Primitive("float"), types.Primitive("double"))
BROKEN = "__broken"
"""Column of an evaluated DataFrame: the broken row rules, one bit each."""
_NUMBER = "__lakehouse_number"
_TEXT = types.Primitive("string")
_BITS = 62
"""Number of rules that fit into a bigint; further rules are evaluated each time."""


@dataclass(frozen=True)
class PreparedFrame:
    """A DataFrame in the declared types that retains the delivered values.

    `frame` has the declared columns, then those of `SOURCE_COLUMNS` and `DELETED` that the
    asset returned, then the original value of each cast column, under the name in `delivered`.
    """

    table: IcebergTable
    frame: "DataFrame"
    delivered: Mapping[str, str]
    names: Sequence[str]
    """The columns of `frame`; reading them from Spark would analyze the plan."""
    bits: Mapping[str, int] = field(default_factory=dict)
    """Bit of each rule in `BROKEN`, if the rules were evaluated already."""
    has_some_keys: bool = False
    """Whether rows made of the same delivered row can be missing: only some keys are read."""

    def violation(self, rule: Rule) -> str:
        """Return the SQL predicate of the rows that break a row rule.

        Rows to delete only break rules that cast their key, without which nothing is deleted.
        """
        if rule.name in self.bits:
            return f"({BROKEN} & {1 << self.bits[rule.name]}L <> 0)"
        broken = self._broken_sql(rule)
        is_of_any = not self.deletes or rule in self._key_casts
        return broken if is_of_any else f"(NOT {DELETED} AND {broken})"

    @property
    def _key_casts(self) -> list[Rule]:
        """Cast rules on the key columns of rows to delete."""
        names = self.table.delete_key_columns & self.delivered.keys()
        return [rule for rule in self.table.row_rules if rule.cast and rule.columns[0] in names]

    def _broken_sql(self, rule: Rule) -> str:
        if self._is_of_delivered(rule):
            # A delivered value that cannot be cast is not NULL; `castable` rejects it. Existing
            # rows have no delivered values.
            name = rule.columns[0]
            return f"({self.delivered_sql(name)} IS NULL AND {identifier(name)} IS NULL)"
        column = rule.columns[0] if rule.cast else None
        if column is None or column not in self.delivered:
            return self.table.broken_by(rule)
        if self.table.casts[column] == rule.cast:
            # The cast is not repeated: it failed where the result is NULL.
            return (
                f"({self.delivered_sql(column)} IS NOT NULL AND {identifier(column)} IS NULL)"
            )
        return rule.predicate(self.delivered_sql)

    def _is_of_delivered(self, rule: Rule) -> bool:
        """Whether a rule rejects NULL where another rule rejects or blocks invalid values."""
        if not isinstance(rule, RowRule) or rule.on_failure != "quarantine":
            return False
        castable = (
            other.columns == rule.columns
            for other in self.table.row_rules
            if other.cast and (other.on_failure == "quarantine" or other.fails_above == 0)
        )
        is_delivered = all(column in self.delivered for column in rule.columns)
        return rule.requires_value and is_delivered and any(castable)

    def evaluated(self) -> "PreparedFrame":
        """Return the candidate with a column of broken row rules, one bit each.

        A cached DataFrame then evaluates them once, and retains delivered values only for failures.
        """
        if BROKEN in self.names:
            return self
        bits = _bits(self.table)
        breaks = [
            f"if({self.violation(rule)}, {1 << bits[rule.name]}L, 0L)"
            for rule in self._rules_with(bits)
        ]
        frame = self.frame.selectExpr("*", f"{' + '.join(breaks) or '0L'} AS {BROKEN}")
        names = (*self.names, BROKEN)
        if len(bits) == len(self.table.row_rules):
            raw = {
                identifier(name): f"if({BROKEN} <> 0, {identifier(name)}, NULL)"
                for name in self.delivered.values()
            }
            frame = frame.selectExpr(
                *(f"{raw.get(name, name)} AS {name}" for name in map(identifier, names))
            )
        return replace(self, frame=frame, names=names, bits=bits)

    def known(self, rows: "DataFrame") -> "DataFrame":
        """Return existing rows as evaluated rows, which pass all quarantining rules."""
        rules = (
            rule for rule in self._rules_with(self.bits) if rule.on_failure != "quarantine"
        )
        # Existing rows were cast when they were written.
        breaks = [
            f"if({rule.predicate()}, {1 << self.bits[rule.name]}L, 0L)"
            for rule in rules
            if not rule.cast
        ]
        # Names that differ only in case are equal.
        existing = {name.lower() for name in rows.columns}
        names = (name for name in self.names if name.lower() in existing)
        return rows.selectExpr(
            *map(identifier, names), f"{' + '.join(breaks) or '0L'} AS {BROKEN}"
        )

    def _rules_with(self, bits: Mapping[str, int]) -> list[Rule]:
        return [rule for rule in self.table.row_rules if rule.name in bits]

    @property
    def deletes(self) -> bool:
        """Whether the DataFrame marks rows to delete."""
        return DELETED in self.names

    def delivered_sql(self, column: str) -> str:
        """Return the SQL of a column's delivered value."""
        return identifier(self.delivered.get(column, column))

    @property
    def rejected_predicate(self) -> str:
        """The SQL predicate of the rows that go to the quarantine."""
        return self.broken(self.table.quarantining_rules)

    def broken(self, rules: Sequence[Rule]) -> str:
        """Return the SQL predicate of the rows that break any of some row rules."""
        mask = sum(1 << self.bits[rule.name] for rule in rules if rule.name in self.bits)
        breaks = [f"{BROKEN} & {mask}L <> 0"] if mask else []
        breaks += [self.violation(rule) for rule in rules if rule.name not in self.bits]
        return f"({' OR '.join(breaks)})" if breaks else "false"

    def cast_once(self) -> "DataFrame":
        """Return the DataFrame for a filter by rules, with each cast evaluated once.

        A row number keeps Spark from pushing the filter below the projection.
        """
        if not self.delivered:
            return self.frame
        numbered = self.frame.selectExpr("*", f"monotonically_increasing_id() AS {_NUMBER}")
        return numbered.where(f"{_NUMBER} >= 0")

    def accepted(self, frame: "DataFrame | None" = None) -> "DataFrame":
        """Return the accepted rows in the declared columns, with `DELETED` if present."""
        rows = (self.frame if frame is None else frame).where(f"NOT {self.rejected_predicate}")
        columns = [*written_columns(self.table), *([DELETED] if self.deletes else [])]
        return rows.selectExpr(*map(identifier, columns))

    @property
    def shown_terms(self) -> list[str]:
        """Return the SQL terms that show failing rows with their delivered values."""
        present = [
            name for name in self.names if name in {*self.table.column_names, *SOURCE_COLUMNS}
        ]
        shown = [f"{self.delivered_sql(name)} AS {identifier(name)}" for name in present]
        return (
            [*shown, f"{self._readable_sql()} AS {READABLE}"]
            if self.table.has_personal_data
            else shown
        )

    def _readable_sql(self) -> str:
        """Return SQL for the cast columns whose delivered text is valid for its type."""
        typed = (name for name in self.delivered if not _is_text(self.table, name))
        named = ", ".join(
            f"CASE WHEN {identifier(name)} IS NOT NULL THEN {literal(name)} END"
            for name in typed
        )
        return f"array_compact(array({named}))" if named else "CAST(array() AS array<string>)"

    def quarantine_rows(self, rejected: "DataFrame") -> "DataFrame":
        """Return rejected rows in the form of the quarantine table."""
        assert self.table.quarantine is not None
        delivered = [
            name
            for name in self.table.quarantine.column_names
            if name in self.table.column_names
        ]
        texts = [
            f"{self._text_sql(name)} AS {identifier(name)}"
            for name in delivered
            if name not in SOURCE_COLUMNS
        ]
        reasons = ", ".join(
            f"CASE WHEN {self.violation(rule)} THEN {literal(rule.name)} END"
            for rule in self.table.quarantining_rules
        )
        present = rejected.columns
        sources = [
            name if name in present else f"CAST(NULL AS {_SOURCE_TYPES[name]}) AS {name}"
            for name in SOURCE_COLUMNS
        ]
        values = (
            self._text_sql(name, has_offset=False) for name in written_columns(self.table)
        )
        return each_once(
            rejected.selectExpr(
                *texts,
                f"{row_key_sql(present, values, self._part_sql())} AS _row_key",
                f"filter(array({reasons}), reason -> reason IS NOT NULL) AS _reasons",
                *sources,
            )
        )

    def _part_sql(self) -> str | None:
        """Return SQL that distinguishes the rows that different runs make of one delivered row;
        None if each run makes all of them.
        """
        by, mode = self.table.overwritten_by, self.table.write
        if by:
            return f"CAST({identifier(by)} AS STRING)"
        if not self.has_some_keys or not isinstance(mode, Merge):
            return None
        key = (self._text_sql(name, has_offset=False) for name in mode.on)
        return json_of(f"array({', '.join(key)})")

    def _text_sql(self, column: str, *, has_offset: bool = True) -> str:
        """Return SQL of a delivered value as text; NULL for the stamp."""
        if column not in written_columns(self.table):
            return "CAST(NULL AS STRING)"
        has_offset = has_offset and depends_on_time_zone(self.table, column)
        if column in self.delivered:
            return text_sql(self.delivered[column], has_offset=has_offset)
        return text_sql(column, has_parts=is_nested(self.table, column), has_offset=has_offset)


_SOURCE_TYPES = {"_source_file": "STRING", "_source_sha256": "STRING", "_source_row": "BIGINT"}


def text_sql(column: str, *, has_parts: bool = False, has_offset: bool = False) -> str:
    """Return SQL of a column's value as stored in a quarantine.

    :param has_offset: whether a `timestamp` has its UTC offset, so that no other zone applies.
        Row keys have none, for compatibility.
    """
    quoted = identifier(column)
    if has_parts:
        return json_of(quoted)
    text = f"CAST({quoted} AS STRING)"
    return (
        f"if({is_timestamp_sql(quoted)}, concat({text}, 'Z'), {text})" if has_offset else text
    )


def depends_on_time_zone(table: IcebergTable, column: str) -> bool:
    """Whether the text of a column depends on a time zone: timestamps and dates.

    Identifiers of data subjects are excluded: an erasure finds them as Spark casts them.
    """
    is_of_time = table.column(column).type in ("date", "timestamp")
    return is_of_time and column not in table.masked_columns


def written_columns(table: IcebergTable) -> list[str]:
    """Names of the columns that an asset computes: all except the stamp of a merge."""
    return [name for name in table.column_names if name != table.stamp]


def _bits(table: IcebergTable) -> dict[str, int]:
    return {rule.name: bit for bit, rule in enumerate(table.row_rules[:_BITS])}


def prepare(
    table: IcebergTable, frame: "DataFrame", extra_columns: Sequence[str] = ()
) -> PreparedFrame:
    """Convert a DataFrame to the declared columns and types; lazy, runs no job.

    Evaluated candidates are returned unchanged.

    :param extra_columns: columns of the DataFrame that are not in the table, and are kept.
    :raises FrameMismatch: names missing and unknown columns and type mismatches, with the
        expected ones.
    """
    table = with_implied_rules(table, frame)
    if BROKEN in frame.columns:
        delivered = _delivered_names(table, frame)
        return PreparedFrame(table, frame, delivered, frame.columns, _bits(table))
    frame = widened(frame)
    frame_types = _frame_types(table, frame)
    _check_names(table, [name for name in frame.columns if name not in extra_columns])
    selected: list[str] = []
    delivered = {}
    mismatched: dict[str, types.ColumnType] = {}
    for name in written_columns(table):
        declared_type = types.parse(table.column(name).type)
        frame_type = frame_types.get(name)
        quoted = identifier(name)
        if frame_type == declared_type:
            selected.append(quoted)
        elif frame_type is None or is_wider(declared_type, frame_type):
            selected.append(f"CAST({quoted} AS {declared_type}) AS {quoted}")
        elif name in table.casts and (frame_type == _TEXT or name not in table.read_from_text):
            delivered[name] = f"{_DELIVERED}{name}"
            read = _integer_only(
                table.cast_sql(name, quoted), quoted, frame_type, declared_type
            )
            selected.append(f"CAST({read} AS {declared_type}) AS {quoted}")
        elif is_exact(declared_type) and is_exact(frame_type):
            if name in table.casts and not always_fits(declared_type, frame_type):
                delivered[name] = f"{_DELIVERED}{name}"
            selected.append(f"{_fitted(table, name, frame_type)} AS {quoted}")
        else:
            mismatched[name] = frame_type
    if mismatched:
        raise _type_mismatch(table, mismatched)
    extra_names = (*SOURCE_COLUMNS, DELETED)
    extra = [
        name for name in extra_names if name in frame.columns and name not in table.column_names
    ]
    extra += extra_columns
    # NULL in `DELETED` means that the row is kept.
    kept = [
        f"coalesce({name}, false) AS {name}" if name == DELETED else identifier(name)
        for name in extra
    ]
    raw = [f"{identifier(name)} AS {identifier(hidden)}" for name, hidden in delivered.items()]
    names = (*written_columns(table), *extra, *delivered.values())
    rows = frame.selectExpr(*selected, *kept, *raw)
    return PreparedFrame(table, rows, delivered, names)


def with_implied_rules(table: IcebergTable, frame: "DataFrame") -> IcebergTable:
    """Return the table with the rules that follow from the types of a DataFrame."""
    if BROKEN in frame.columns:
        return with_fitting_rules(table, [*_delivered_names(table, frame)])
    frame_types = _frame_types(table, frame)
    misfits = []
    for name in written_columns(table):
        declared_type, frame_type = types.parse(table.column(name).type), frame_types.get(name)
        if frame_type is None or not (is_exact(declared_type) and is_exact(frame_type)):
            continue
        if frame_type != declared_type and not always_fits(declared_type, frame_type):
            misfits.append(name)
    return with_fitting_rules(table, misfits)


def _delivered_names(table: IcebergTable, frame: "DataFrame") -> dict[str, str]:
    hidden = {name: f"{_DELIVERED}{name}" for name in table.column_names}
    return {name: kept for name, kept in hidden.items() if kept in frame.columns}


def _fitted(table: IcebergTable, name: str, frame_type: types.ColumnType) -> str:
    """Return SQL of a decimal or integer in its column's type.

    A value that does not fit is NULL if a rule rejects its row, and otherwise an error.
    """
    quoted, declared_type = identifier(name), types.parse(table.column(name).type)
    if always_fits(declared_type, frame_type):
        return f"CAST({quoted} AS {declared_type})"
    cast = f"try_cast({quoted} AS {declared_type})"
    fits = f"try_cast({cast} AS {frame_type}) = {quoted}"
    if name in table.casts:
        return f"CASE WHEN {fits} THEN {cast} END"
    error = (
        f"{table.name}: a value of column {name}, which is {frame_type} in the frame, does"
        f" not fit {declared_type}, as declared. Round or cast it in the asset, declare a wider"
        f" type, or declare castable({name!r}, {str(declared_type)!r}) to quarantine such rows."
    )
    unfit = f"CAST(raise_error({literal(error)}) AS {declared_type})"
    return f"CASE WHEN {fits} THEN {cast} WHEN {quoted} IS NOT NULL THEN {unfit} END"


def _type_mismatch(
    table: IcebergTable, mismatched: Mapping[str, types.ColumnType]
) -> FrameMismatch:
    declared_type = {name: table.column(name).type for name in mismatched}
    columns = "; ".join(
        f"column {name} is {frame_type} in the frame; expected {declared_type[name]}"
        for name, frame_type in mismatched.items()
    )
    casts = ", ".join(f"castable({name!r}, {kind!r})" for name, kind in declared_type.items())
    return FrameMismatch(
        f"{table.name}: {columns}, as declared.",
        next_step=(
            f"Cast it in the asset, or declare {casts} in the rules; rows_of=… does so for"
            " each column that is text in the source table."
        ),
    )


def _frame_types(table: IcebergTable, frame: "DataFrame") -> dict[str, types.ColumnType]:
    frame_types = {}
    for column in frame.schema.fields:
        # A column with only NULL has no type yet (`void`), and takes the declared one.
        if column.name in table.column_names and column.dataType.simpleString() != "void":
            frame_types[column.name] = of_spark(column.dataType)
    return frame_types


def _integer_only(
    cast: str, raw: str, frame_type: types.ColumnType, declared_type: types.ColumnType
) -> str:
    """Return the SQL of a cast that returns NULL for numbers whose fraction would be truncated."""
    has_fractions = isinstance(frame_type, types.Decimal) or frame_type in _FLOATING
    if not has_fractions or str(declared_type) not in types.INTEGER_TYPES:
        return cast
    return f"CASE WHEN {cast} = {raw} THEN {cast} END"


def with_all_columns(table: IcebergTable, frame: "DataFrame") -> "DataFrame":
    """Return the DataFrame of a merge with all columns, if it only has keys and `DELETED`.

    Other DataFrames are unchanged. A row that is not deleted then fails when it is computed.
    """
    if not isinstance(table.write, Merge) or DELETED not in frame.columns:
        return frame
    keys = {*table.write.on, *table.write.prune_by}
    missing = [name for name in written_columns(table) if name not in frame.columns]
    if not missing or set(frame.columns) - {DELETED} != keys:
        return frame
    error = (
        f"{table.name}: a row of the frame has {DELETED} false and no column but"
        f" {', '.join(sorted(keys))}; expected all declared columns, or {DELETED} to be true of"
        " each row."
    )
    is_deleted = (
        f"if({DELETED}, true, CAST(raise_error({literal(error)}) AS boolean)) AS {DELETED}"
    )
    nulls = (
        f"CAST(NULL AS {table.column(name).type}) AS {identifier(name)}" for name in missing
    )
    return frame.selectExpr(*map(identifier, sorted(keys)), *nulls, is_deleted)


def _check_names(table: IcebergTable, names: list[str]) -> None:
    declared_type = written_columns(table)
    allowed = {
        *table.column_names,
        *SOURCE_COLUMNS,
        *names_of_machine(table),
        *([DELETED] if isinstance(table.write, Merge) else []),
    }
    missing = [name for name in declared_type if name not in names]
    unknown = [name for name in names if name not in allowed]
    if missing or unknown:
        parts = [
            f"lacks {', '.join(missing)}" if missing else "",
            f"has unknown {', '.join(unknown)}" if unknown else "",
        ]
        raise FrameMismatch(
            f"{table.name}: the frame {' and '.join(part for part in parts if part)}; expected"
            f" {', '.join(declared_type)}.",
            next_step="Select the declared columns in the asset, or declare the new ones.",
        )


def is_nested(table: IcebergTable, column: str) -> bool:
    """Whether the declared type of a column is nested."""
    return types.is_nested(types.parse(table.column(column).type))


def _is_text(table: IcebergTable, column: str) -> bool:
    """Whether a column can contain any text or bytes."""
    return is_nested(table, column) or table.column(column).type in ("string", "binary")


def differs_sql(table: IcebergTable, column: str, left: str, right: str) -> str:
    """Return the SQL predicate that two rows differ in a column; NULLs are equal."""
    column_type = types.parse(table.column(column).type)
    a, b = f"{left}.{identifier(column)}", f"{right}.{identifier(column)}"
    a, b = (types.comparable_sql(column_type, value) for value in (a, b))
    return f"{a} IS DISTINCT FROM {b}"
