"""Rules on keys, evaluated with other rows: unique keys, and references to another table.

They reject no single rows, since they apply to sets of rows.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedRows
from lakehouse.tables.column import tuple_of
from lakehouse.tables.declaration import TableDeclaration, name_of
from lakehouse.tables.quoting import between, identifier, literal, without_zone
from lakehouse.tables.rule import CountOptions, Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeyRule(EvaluableRule):
    """A rule on the key in its columns; a row with a NULL in the key passes."""

    reads_other_rows: ClassVar[bool] = True
    failed_sql: ClassVar[str]
    """SQL of the number of failing rows of a key, from `__added` and `__total_rows`."""

    @property
    @abstractmethod
    def other_columns(self) -> tuple[str, ...]:
        """The key columns in the other rows."""

    @abstractmethod
    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame | None":
        """Return the other rows; None if there are none."""

    @abstractmethod
    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        """Return the sample columns of the failing rows."""

    def lookup(self, evaluated: EvaluatedRows) -> "KeyLookup":
        """Return the lookup of the keys in the other rows."""
        first = evaluated.table.column(self.columns[0])
        return KeyLookup(self, self.other_rows(evaluated), first.type)


class UniqueRule(KeyRule):
    """Keys are unique among the evaluated and the existing rows."""

    identifies_rows: ClassVar[bool] = True
    # The first new row of a new key passes.
    failed_sql: ClassVar[str] = (
        "CASE WHEN __total_rows > __added THEN __added ELSE __added - 1 END"
    )

    @property
    def sql(self) -> str:
        return f"unique({', '.join(self.columns)})"

    @property
    def other_columns(self) -> tuple[str, ...]:
        return self.columns

    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame | None":
        return evaluated.existing

    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        keys = [f"__key_{at} AS {identifier(name)}" for at, name in enumerate(self.columns)]
        repeated = lookup.grouped(rows).where("__total_rows > 1 AND __added > 0")
        return repeated.selectExpr(*keys, "__total_rows AS rows")


@dataclass(frozen=True, kw_only=True)
class ReferencesRule(KeyRule):
    """Each key exists in another table."""

    table: str
    partner: tuple[str, ...]
    failed_sql: ClassVar[str] = "if(__total_rows > __added, 0, __added)"

    @property
    def other_columns(self) -> tuple[str, ...]:
        return self.partner

    @property
    def sql(self) -> str:
        return f"({', '.join(self.columns)}) in {self.table} ({', '.join(self.other_columns)})"

    @property
    def read_columns(self) -> Mapping[str, Sequence[str]]:
        return {self.table: self.other_columns}

    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame":
        if evaluated.read_other:
            return evaluated.read_other(self.table)
        return read_main(evaluated.engine, self.table)

    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        from pyspark.sql.functions import expr

        assert lookup.reference_rows is not None
        partners = lookup.reference_rows.selectExpr(*_numbered(self.other_columns))
        same = [f"s.{identifier(name)} = p.__key_{at}" for at, name in enumerate(self.columns)]
        with_key = _with_key(rows, self.columns)
        return with_key.alias("s").join(
            partners.alias("p"), expr(" AND ".join(same)), "left_anti"
        )


@dataclass(frozen=True)
class KeyLookup:
    """A key rule, the other rows if there are any, and the type of its first column."""

    rule: KeyRule
    reference_rows: "DataFrame | None" = None
    first_type: str = ""

    def aggregates(self) -> Mapping[str, str]:
        if self.reference_rows is None:
            return {}
        column, name = identifier(self.rule.columns[0]), self.rule.name
        least, greatest = (
            without_zone(f"{end}({column})", self.first_type) for end in ("min", "max")
        )
        return {f"__low_{name}": least, f"__high_{name}": greatest}

    def pruned(self, values: Mapping[str, Any]) -> "KeyLookup":
        if self.reference_rows is None:
            return self
        low, high = (values[f"__{end}_{self.rule.name}"] for end in ("low", "high"))
        column = self.rule.other_columns[0]
        within = between(column, low, high)
        return replace(self, reference_rows=self.reference_rows.where(within))

    def count(self, rows: "DataFrame") -> "DataFrame":
        return self.grouped(rows).selectExpr(
            f"{literal(self.rule.name)} AS rule",
            f"coalesce(sum(if(__added > 0, {self.rule.failed_sql}, 0)), 0) AS failed",
        )

    def broken_rows(self, rows: "DataFrame") -> "DataFrame":
        return self.rule.broken_rows(self, rows)

    def grouped(self, rows: "DataFrame") -> "DataFrame":
        """Return each key with its evaluated rows (`__added`) and all rows (`__total_rows`).

        Key columns are numbered, since a column can be named `count`. References are evaluated
        so too: a join would read the smaller table first, in a separate job.
        """
        from pyspark.sql.functions import expr

        columns, other_columns = self.rule.columns, self.rule.other_columns
        keys = [f"__key_{at}" for at in range(len(columns))]
        added, total = "count(1)", expr("count(1)").alias("__total_rows")
        marked = _with_key(rows, columns).selectExpr(*_numbered(columns), "1 AS __new")
        if self.reference_rows is not None:
            reference_rows = _with_key(self.reference_rows, other_columns)
            marked = marked.unionAll(
                reference_rows.selectExpr(*_numbered(other_columns), "0 AS __new")
            )
            added = "sum(__new)"
        return marked.groupBy(*keys).agg(expr(added).alias("__added"), total)


def unique(*columns: str, **options: Unpack[CountOptions]) -> Rule:
    """Values in these columns are unique; rows with a NULL in one of them pass."""
    description = f"{', '.join(columns)} is unique"
    return UniqueRule.declare("unique", columns, description, options)


def references(
    columns: str | Sequence[str],
    table: str | TableDeclaration,
    other_columns: str | Sequence[str] | None = None,
    **options: Unpack[CountOptions],
) -> Rule:
    """Each row has a match in another table; rows with a NULL in one of the columns pass.

    Inputs of the write are read as pinned, and other tables as current.

    :param table: the other table, or its name.
    :param other_columns: its columns, in the same order; defaults to the same names.
    """
    other, keys = name_of(table), tuple_of(columns)
    other_keys = tuple_of(other_columns) if other_columns is not None else keys
    if len(keys) != len(other_keys) or not keys:
        raise DeclarationError(
            f"references({columns!r}, {other!r}, {other_columns!r}) compares {len(keys)} with"
            f" {len(other_keys)} columns; expected the same number."
        )
    return ReferencesRule.declare(
        "references",
        keys,
        f"{', '.join(keys)} is one of {other} ({', '.join(other_keys)})",
        options,
        table=other,
        partner=other_keys,
    )


def _numbered(columns: Sequence[str]) -> list[str]:
    return [f"{identifier(name)} AS __key_{at}" for at, name in enumerate(columns)]


def _with_key(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    return rows.where(" AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns))
