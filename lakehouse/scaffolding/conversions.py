"""How delivered text of a column is brought into the form that casts read, as code."""

from lakehouse.scaffolding.code_layout import Argument, Call, quoted_text
from lakehouse.scaffolding.feed_plan import PlannedColumn
from lakehouse.scaffolding.module_text import Import
from lakehouse.tables.quoting import identifier

_BLANK = "blank_as_null"
_MODULE = "lakehouse.tables.written_forms"


def raw_sql(column: PlannedColumn) -> str:
    """Return the SQL of what is delivered, as code."""
    name = column.in_bronze
    return quoted_text(identifier(name) if column.is_renamed else name)


def conversion(column: PlannedColumn) -> Call | None:
    """Return the call that converts a column; None where casts read what is delivered."""
    numbers, dates = column.reading.numbers, column.reading.dates
    words = map(quoted_text, column.nothing)
    blank = Call(_BLANK, [raw_sql(column), *words]) if column.has_blanks else None
    raw = blank or raw_sql(column)
    if dates is not None and dates.converted_forms:
        return Call("iso_date", [raw, *map(quoted_text, dates.converted_forms)])
    if column.reading.is_epoch:
        return Call("epoch_milliseconds", [raw])
    if numbers is None or column.reading.unclear:
        return blank
    if numbers.mark == ",":
        grouped = [Argument("grouped", "True")] if numbers.is_grouped else []
        return Call("decimal_comma", [raw, *grouped])
    if numbers.is_pointed:
        return Call("whole_number", [raw])
    return Call("grouped_by_commas", [raw]) if numbers.is_grouped else blank


def conversion_import(column: PlannedColumn) -> list[Import]:
    """Return what has to be imported for that call."""
    call = conversion(column)
    names = dict.fromkeys(
        [*([_BLANK] if column.has_blanks else []), *([call.name] if call else [])]
    )
    return [(_MODULE, name) for name in names]
