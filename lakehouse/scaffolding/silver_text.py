"""The text of the file that declares the typed table of a feed."""

from collections.abc import Sequence

from lakehouse.scaffolding.code_layout import (
    Argument,
    Call,
    Code,
    Collection,
    Layout,
    quoted_text,
)
from lakehouse.scaffolding.conversions import conversion, conversion_import, raw_sql
from lakehouse.scaffolding.feed_notes import silver_notes, unclear_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, PlannedColumn
from lakehouse.scaffolding.module_text import CONFIRM, Import, Module, function_text
from lakehouse.tables.table import SOURCE_COLUMNS

_TABLE = "lakehouse.tables.table"
_ROWS = "lakehouse.iceberg.rules.rows"
_MODIFIED = "_source_modified_at"
_NEWEST = ("_ingested_at", _MODIFIED, "_source_file", "_source_row", "_source_sha256")
"""What orders deliveries, as for a table that is merged by its key."""
_RULES = {"unique": "lakehouse.iceberg.rules.unique_and_references"}


def silver_text(plan: FeedPlan, package: str, layout: Layout) -> str:
    """Return the text of the file; it reads as one that was written by hand."""
    comments = layout.comments(
        silver_notes(plan), title=CONFIRM.format(rows=plan.rows, files=plan.files_text)
    )
    comments += layout.comments(
        unclear_notes(plan), title="Text, until somebody says how to read it:"
    )
    reads = Call(_read(plan), ["RAW", *_by(plan)])
    inputs = Collection([Argument('"delivered"', reads, ":")], "{}")
    decorator = layout.statement(
        "@", Call("iceberg_asset", ["TABLE", Argument("inputs", inputs)])
    )
    function = function_text(
        layout,
        decorator,
        plan.name,
        "delivered",
        _description(plan),
        _body(plan, layout),
    )
    return Module(
        f"`{plan.silver}`: {_lowered(_description(plan))}",
        _imports(plan, package),
        (comments + layout.statement("TABLE = ", _table(plan)),),
        function,
        package.split(".")[0],
    ).text(layout)


def _description(plan: FeedPlan) -> str:
    if plan.key:
        newest = f"the newest by {plan.moment.name}" if plan.moment else "as last delivered"
        return f"One row for each {' and '.join(plan.key)}, {newest}."
    return f"One row for each delivered line of the feed `{plan.name}`, typed."


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_each_line(plan: FeedPlan) -> bool:
    """Whether days are computed from all lines of theirs, of which none stands for another."""
    return plan.days is not None and not plan.key


def _has_versions(plan: FeedPlan) -> bool:
    """Whether the table says which row of a key is the newest; one that is merged, and has no
    moment, keeps what was delivered last by itself.
    """
    return bool(plan.key) and (plan.days is not None or plan.moment is not None)


def _read(plan: FeedPlan) -> str:
    return "latest" if _is_each_line(plan) else "versions_of"


def _by(plan: FeedPlan) -> list[Argument]:
    return [Argument("by", quoted_text(plan.days.name))] if plan.days else []


def _imports(plan: FeedPlan, package: str) -> list[Import]:
    raw = f"{package}.bronze.{plan.bronze.split('.')[1]}"
    imports = [
        (raw, "TABLE as RAW"),
        ("lakehouse.iceberg.read.inputs", _read(plan)),
        ("lakehouse.orchestration.iceberg_asset", "iceberg_asset"),
        (_TABLE, "Column"),
        (_TABLE, "IcebergTable"),
    ]
    imports += [(_RULES.get(rule.name, _ROWS), rule.name) for rule in _rules(plan)]
    imports += [(_TABLE, name) for name in _write_names(plan)]
    if _filled(plan):
        imports.append((_ROWS, "not_null"))
    for column in plan.columns:
        imports += conversion_import(column)
    return imports


def _write_names(plan: FeedPlan) -> list[str]:
    if plan.days is not None:
        return ["Versions", "by_day"] if plan.key else ["by_day"]
    if not plan.key:
        return ["Overwrite", "Versions"]
    return ["Merge", "Versions"] if _has_versions(plan) else ["Merge"]


def _table(plan: FeedPlan) -> Call:
    parts = [
        Argument("name", quoted_text(plan.silver)),
        Argument("comment", quoted_text(_description(plan))),
        Argument("rows_of", "RAW"),
        Argument("columns", Collection(_columns(plan), is_open=True)),
        *_write(plan),
    ]
    rules: list[Code | Argument] = [*_filled(plan), *_rules(plan)]
    if rules:
        parts.append(Argument("rules", Collection(rules, is_open=len(rules) > 1)))
    if plan.subject is not None and plan.subject.is_renamed:
        parts.append(Argument("subject", quoted_text(plan.subject.name)))
    return Call("IcebergTable", parts, is_open=True)


def _columns(plan: FeedPlan) -> list[Code]:
    columns: list[Code] = []
    for column in plan.columns:
        known: list[Argument] = []
        if column.is_renamed and column.why_personal:
            known.append(Argument("personal", "True"))
        if column.is_renamed:
            known.append(Argument("renamed_from", quoted_text(column.in_bronze)))
        columns.append(
            Call("Column", [quoted_text(column.name), quoted_text(column.type), *known])
        )
        if plan.days is not None and column is plan.days.column and column.type != "date":
            columns.append(Call("Column", [quoted_text(plan.days.name), '"date"']))
    if _has_versions(plan):
        columns.append(Call("Column", [quoted_text(_MODIFIED), '"timestamp"']))
    return columns


def _write(plan: FeedPlan) -> list[Argument]:
    if plan.days is not None:
        write = Call(
            "by_day",
            [
                quoted_text(plan.days.silver_name),
                Argument("since", quoted_text(plan.days.since.replace(day=1).isoformat())),
            ],
        )
    elif plan.key:
        write = Call("Merge", [Argument("on", _texts(plan.key))])
        if not _has_versions(plan):
            return [Argument("write", write)]
    else:
        write = Call("Overwrite", [])
    if _is_each_line(plan):
        return [Argument("write", write), Argument("source_columns", "True")]
    of, newest = (plan.key, _newest(plan)) if plan.key else (SOURCE_COLUMNS, ("_ingested_at",))
    versions = Call(
        "Versions", [Argument("of", _texts(of)), Argument("newest", _texts(newest))]
    )
    return [Argument("write", write), Argument("versions", versions)]


def _newest(plan: FeedPlan) -> tuple[str, ...]:
    return (plan.moment.name, *_NEWEST) if plan.moment else _NEWEST


def _texts(texts: Sequence[str]) -> Code:
    return Collection([quoted_text(text) for text in texts])


def _filled(plan: FeedPlan) -> list[Code]:
    """Return the rules of what each row has: its key, its day and its numbers."""
    names = [*plan.key]
    if plan.days is not None and plan.key:
        names.append(plan.days.silver_name)
    numbers = (
        column.name for column in plan.columns if column.is_filled and _is_number(column)
    )
    names = list(dict.fromkeys([*names, *numbers]))
    return [Call("*map", ["not_null", _texts(names)])] if names else []


def _is_number(column: PlannedColumn) -> bool:
    return column.reading.numbers is not None and not column.reading.unclear


def _rules(plan: FeedPlan) -> list[Call]:
    rules = []
    if plan.key:
        rules.append(Call("unique", [quoted_text(name) for name in plan.key]))
    # Where each line counts, a row of no day that there is is refused without a rule.
    if plan.days is not None and plan.key:
        rules.append(
            Call(
                "dated",
                [
                    quoted_text(plan.days.silver_name),
                    Argument("since", quoted_text(plan.days.since.replace(day=1).isoformat())),
                    Argument("until", '"_ingested_at"'),
                    Argument("time_zone", "RAW.wall_time_zone"),
                ],
            )
        )
    return rules


def _body(plan: FeedPlan, layout: Layout) -> str:
    changed = []
    for column in plan.columns:
        call = conversion(column)
        if call or column.is_renamed:
            sql: Code = call or raw_sql(column)
            changed.append(Argument(quoted_text(column.name), Call("expr", [sql]), ":"))
    dropped = _dropped(plan)
    if not changed:
        rows: Code = Call("delivered.drop", dropped) if dropped else "delivered"
        return layout.statement("return ", rows, indent=4).removesuffix("\n")
    typed = Call("delivered.withColumns", [Collection(changed, "{}", is_open=len(changed) > 1)])
    head = "    from pyspark.sql.functions import expr\n\n"
    if not dropped:
        return head + layout.statement("return ", typed, indent=4)
    rest = layout.statement("return ", Call("typed.drop", dropped), indent=4)
    return f"{head}{layout.statement('typed = ', typed, indent=4)}\n{rest}"


def _dropped(plan: FeedPlan) -> list[str]:
    """Return the texts of the columns of the frame that the table has not: versions leave them
    out, and all else says what it is given.
    """
    if plan.days is None or plan.key:
        return []
    names = [column.in_bronze for column in plan.columns if column.is_renamed]
    is_day_of_date = plan.days.name != plan.days.silver_name
    return [
        quoted_text(name) for name in (*names, *([plan.days.name] if is_day_of_date else []))
    ]
