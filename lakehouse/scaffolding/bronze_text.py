"""The text of the file that declares a feed, and the bronze table that its files land in."""

from lakehouse.scaffolding.code_layout import (
    Argument,
    Call,
    Code,
    Collection,
    Layout,
    quoted_text,
)
from lakehouse.scaffolding.conversions import conversion, conversion_import, raw_sql
from lakehouse.scaffolding.feed_notes import bronze_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.module_text import CONFIRM, Import, Module, function_text


def bronze_text(plan: FeedPlan, package: str, layout: Layout) -> str:
    """Return the text of the file; it reads as one that was written by hand."""
    title = CONFIRM.format(rows=plan.rows, files=plan.files_text)
    comments = layout.comments(bronze_notes(plan), title=title)
    function = function_text(
        layout,
        "@feed_asset(FEED, TABLE)",
        plan.bronze.split(".")[1],
        "delivered",
        f"Rows of the feed `{plan.name}` as they were delivered, each with its source.",
        _body(plan, layout),
    )
    return Module(
        f"`{plan.bronze}`: rows of the feed `{plan.name}` as they were delivered.",
        _imports(plan),
        (comments + layout.statement("FEED = ", _feed(plan)), _table(plan, layout)),
        function,
        package.split(".")[0],
    ).text(layout)


def _imports(plan: FeedPlan) -> list[Import]:
    feed = "lakehouse.tables.feed"
    imports = [
        ("lakehouse.ingestion.feed_asset", "feed_asset"),
        (feed, "Feed"),
        (feed, "bronze_table"),
    ]
    if any(isinstance(_column(column), Call) for column in plan.columns):
        imports.append((feed, "FeedColumn"))
    if plan.days is not None:
        imports.append(("lakehouse.tables.casts", "cast_sql"))
        imports.append(("lakehouse.tables.table", "Column"))
        imports += conversion_import(plan.days.column)
    return imports


def _feed(plan: FeedPlan) -> Call:
    parts = [
        Argument("name", quoted_text(plan.name)),
        Argument("table", quoted_text(plan.bronze)),
        Argument("columns", Collection([_column(column) for column in plan.columns])),
        Argument("time_zone", quoted_text(plan.time_zone)),
    ]
    if plan.formats:
        parts.append(
            Argument("formats", Collection([quoted_text(name) for name in plan.formats]))
        )
    if plan.delimiter != ",":
        parts.append(Argument("delimiter", quoted_text(plan.delimiter)))
    if plan.subject is not None:
        parts.append(Argument("subject", quoted_text(plan.subject.in_bronze)))
        if plan.moment is not None:
            parts.append(Argument("moment", quoted_text(plan.moment.in_bronze)))
    elif plan.personal_columns:
        parts.append(
            Argument(
                "no_subject", quoted_text("The files that were looked at have no such column.")
            )
        )
    return Call("Feed", parts, is_open=True)


def _column(column: PlannedColumn) -> Code:
    options = {"optional": column.is_optional, "personal": bool(column.why_personal)}
    chosen = [Argument(name, "True") for name, is_chosen in options.items() if is_chosen]
    if column.in_bronze != column.delivered:
        chosen.append(Argument("header", quoted_text(column.delivered)))
    if column.bronze_type != "string":
        chosen.append(Argument("type", quoted_text(column.bronze_type)))
    name = quoted_text(column.in_bronze)
    return Call("FeedColumn", [name, *chosen]) if chosen else name


def _table(plan: FeedPlan, layout: Layout) -> str:
    comment = f"Rows of the feed {plan.name} as delivered, each with its source."
    parts: list[Code | Argument] = ["FEED", quoted_text(comment)]
    if plan.days is not None:
        days = plan.days
        doc = f"Day of {days.column.delivered} in the feed's time zone."
        column = Call("Column", [quoted_text(days.name), '"date"', quoted_text(doc)])
        parts.append(Argument("extra", Collection([column])))
        parts.append(Argument("partitioning", Collection([quoted_text(days.name)])))
    return layout.statement("TABLE = ", Call("bronze_table", parts, is_open=len(parts) > 2))


def _body(plan: FeedPlan, layout: Layout) -> str:
    if plan.days is None:
        return "    return delivered"
    days = plan.days
    raw = conversion(days.column) or raw_sql(days.column)
    day = layout.statement(
        "day = ", Call("cast_sql", [raw, '"date"', "FEED.time_zone"]), indent=4
    )
    return f'{day}\n    return delivered.selectExpr("*", f"{{day}} AS {days.name}")'
