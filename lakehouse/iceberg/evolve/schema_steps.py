"""Evolution steps and refusals for columns.

Automatic steps run before a write. Others wait for `lakehouse apply`; those that block writes
stop them until then, since DataFrames in the declared schema would not fit the table.
"""

from dataclasses import dataclass
from enum import IntEnum, auto

from lakehouse.iceberg.evolve.managed_properties import created_properties
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import Column, IcebergTable
from lakehouse.tables.table_names import namespace_of

Path = tuple[str, ...]
"""A column, or the path to a nested field: `("lines", "element", "price")`."""


class Order(IntEnum):
    """The order of steps: a name must exist before others refer to it."""

    CREATE = auto()
    RENAME = auto()
    WIDEN = auto()
    ALLOW_NULL = auto()
    ADD = auto()
    COMMENT = auto()
    PARTITIONING = auto()
    SORT_ORDER = auto()
    DROP = auto()
    MOVE = auto()
    LOCATION = auto()
    FORMAT = auto()
    PROPERTIES = auto()
    COMMIT = auto()


@dataclass(frozen=True)
class Step:
    """One change of a table: its description and SQL."""

    order: Order
    description: str
    clauses: tuple[str, ...] = ()
    """SQL of each statement after the table name."""
    prefix: str = "ALTER TABLE"
    """SQL of each statement before the table name."""
    automatic: bool = True
    blocks_writes: bool = False

    def statements(self, catalog: Catalog, table: str) -> list[str]:
        """Return the SQL statements in order; empty for a step that is a commit instead of DDL."""
        name = catalog.sql_name(table)
        statements = [f"{self.prefix} {name} {clause}" for clause in self.clauses]
        if self.order is Order.CREATE:
            namespace = identifier(catalog.name, namespace_of(table))
            statements.insert(0, f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        return statements


@dataclass(frozen=True)
class Refusal:
    """A declared change that would lose data or break readers.

    `current` and `declared` complete "… is `current` in the table and `declared` in the
    declaration".
    """

    table: str
    subject: str
    """The subject of the change, such as `column price`."""
    current: str
    declared: str
    why: str
    next_step: str

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.subject} is {self.current} in the table and {self.declared}"
            f" in the declaration; {self.why} {self.next_step}"
        )


Change = Step | Refusal


def create_table(table: IcebergTable) -> Step:
    """Return the step that creates a table; its sort order is a separate step."""
    columns = ",\n  ".join(_definition(column) for column in table.columns)
    parts = [f"(\n  {columns}\n)", "USING iceberg"]
    if table.partition_fields:
        parts.append(
            f"PARTITIONED BY ({', '.join(field.sql for field in table.partition_fields)})"
        )
    if table.location:
        parts.append(f"LOCATION {literal(table.location)}")
    if table.comment:
        parts.append(f"COMMENT {literal(table.comment)}")
    parts.append(f"TBLPROPERTIES ({assignments(created_properties(table))})")
    spec = f", partitioned by {', '.join(table.partitioning)}" if table.partitioning else ""
    return Step(
        Order.CREATE,
        f"create the table with {len(table.columns)} columns{spec}",
        ("\n".join(parts),),
        prefix="CREATE TABLE IF NOT EXISTS",
    )


def rename_column(old: str, new: str) -> Step:
    """Return the step that renames a column; its values and field id stay."""
    return Step(
        Order.RENAME,
        f"rename column {old} to {new}",
        (f"RENAME COLUMN {identifier(old)} TO {identifier(new)}",),
        automatic=False,
        blocks_writes=True,
    )


def widen_column(path: Path, current: str, declared: str) -> Step:
    """Return the step that widens a type."""
    return Step(
        Order.WIDEN,
        f"widen column {dotted(path)} from {current} to {declared}",
        (f"ALTER COLUMN {identifier(*path)} TYPE {declared}",),
    )


def allow_null(column: str) -> Step:
    """Return the step that allows NULL in a column."""
    return Step(
        Order.ALLOW_NULL,
        f"allow NULL in column {column}",
        (f"ALTER COLUMN {identifier(column)} DROP NOT NULL",),
        automatic=False,
    )


def add_column(path: Path, column_type: str, doc: str = "", after: str | None = None) -> Step:
    """Return the step that adds a column or nested field, with NULL in existing rows;
    `after=None` adds it first.
    """
    return Step(
        Order.ADD,
        f"add column {dotted(path)} {column_type} {_place(after)}",
        (f"ADD COLUMN {identifier(*path)} {column_type}{_comment(doc)} {_place_sql(after)}",),
    )


def comment_on_column(column: str, text: str) -> Step:
    """Return the step that changes the comment of a column."""
    return Step(
        Order.COMMENT,
        f"describe column {column} as {text!r}",
        (f"ALTER COLUMN {identifier(column)} COMMENT {literal(text)}",),
    )


def comment_on_table(text: str) -> Step:
    """Return the step that changes the comment of the table."""
    return Step(
        Order.COMMENT,
        f"describe the table as {text!r}",
        (f"IS {literal(text)}",),
        prefix="COMMENT ON TABLE",
    )


def drop_column(path: Path) -> Step:
    """Return the step that drops a column or nested field; earlier snapshots still contain it."""
    return Step(
        Order.DROP,
        f"drop column {dotted(path)}",
        (f"DROP COLUMN {identifier(*path)}",),
        automatic=False,
        blocks_writes=True,
    )


def move_column(path: Path, after: str | None = None) -> Step:
    """Return the step that moves a column or nested field; `after=None` moves it first."""
    return Step(
        Order.MOVE,
        f"move column {dotted(path)} {_place(after)}",
        (f"ALTER COLUMN {identifier(*path)} {_place_sql(after)}",),
        automatic=False,
    )


def commit_schema() -> Step:
    """Return the step that makes an empty commit with the current schema, so that time travel
    uses its names.
    """
    return Step(Order.COMMIT, "commit the current schema, so that time travel shows it")


def dotted(path: Path) -> str:
    """Format a path: `lines.element.price`."""
    return ".".join(path)


def assignments(properties: dict[str, str]) -> str:
    """Format properties for Spark SQL: `'name' = 'value', …`."""
    return ", ".join(
        f"{literal(name)} = {literal(value)}" for name, value in properties.items()
    )


def _definition(column: Column) -> str:
    required = " NOT NULL" if column.required else ""
    return f"{identifier(column.name)} {column.type}{required}{_comment(column.doc)}"


def _comment(text: str) -> str:
    return f" COMMENT {literal(text)}" if text else ""


def _place(after: str | None) -> str:
    return f"after {after}" if after else "first"


def _place_sql(after: str | None) -> str:
    return f"AFTER {identifier(after)}" if after else "FIRST"
