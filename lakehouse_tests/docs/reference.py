"""The reference: what a file of assets may import, as its signatures and docstrings tell it.

Run as `python -m lakehouse_tests.docs.reference`, it writes docs/reference.md.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lakehouse.errors
from lakehouse_tests.docs.markdown import ROOT
from lakehouse_tests.docs.source import Parameter, Told, functions_of, told

PAGE = ROOT / "docs" / "reference.md"
COMMAND = "make reference"
_WIDTH = 96
_HEAD = f"""# Reference

What a file of assets may import, and the tests of its tables: what each takes, and what it rejects.
`{COMMAND}` writes this page from signatures and docstrings; a test fails where it is older.
How to go about a thing is on [pages of its own](README.md).
"""


@dataclass(frozen=True)
class Part:
    """A section of the page: its title, what it is about, and what it tells of, by module; of
    a module without names, of all its public functions.
    """

    title: str
    about: str
    names: Mapping[str, Sequence[str]]

    @property
    def by_module(self) -> Mapping[str, Sequence[str]]:
        """What it tells of, by module."""
        return {module: names or functions_of(module) for module, names in self.names.items()}


PARTS = (
    Part(
        "Tables",
        "A file of assets declares a table, and has the function that computes it"
        " ([tables](tables.md)).",
        {"lakehouse.tables.table": ("IcebergTable", "Column")},
    ),
    Part(
        "How a table is written",
        "What a table says as `write=`, and as `versions=`"
        " ([partitions](partitions.md), [merges](merges.md), [versions](versions.md)).",
        {
            "lakehouse.tables.table": (
                "Append",
                "Overwrite",
                "by_day",
                "by_hour",
                "by_month",
                "OverwritePartitions",
                "Merge",
                "Versions",
                "SOURCE_KEY",
                "SOURCE_COLUMNS",
            )
        },
    ),
    Part(
        "How a table is kept",
        "What a table says as `upkeep=`, or the package of a layer as `UPKEEP`"
        " ([upkeep](upkeep.md)).",
        {"lakehouse.tables.upkeep": ("Upkeep",)},
    ),
    Part(
        "Feeds",
        "Files that are delivered, and the bronze table that they land in"
        " ([your data](your-data.md)).",
        {
            "lakehouse.tables.feed": ("Feed", "FeedColumn", "bronze_table", "INGEST_COLUMNS"),
            "lakehouse.ingestion.feed_asset": ("feed_asset",),
        },
    ),
    Part(
        "Assets",
        "What makes an asset of a table.",
        {
            "lakehouse.orchestration.iceberg_asset": ("iceberg_asset",),
            "lakehouse.orchestration.sql_asset": ("sql_asset",),
            "lakehouse.orchestration.partitions.partition_bounds": ("table_partitions",),
            "lakehouse.orchestration.asset_specs": ("table_spec",),
        },
    ),
    Part(
        "Inputs",
        "How a table is read: each at the snapshot that it has when the run starts.",
        {
            "lakehouse.iceberg.read.inputs": (
                "latest",
                "incremental",
                "versions_of",
                "changed_keys",
                "existing_rows",
                "as_of",
            )
        },
    ),
    Part(
        "Rules",
        "What a table says as `rules=`; [rules](rules.md) tells which to take, what comes of one"
        " that does not hold, and how a [kind of your own](rules.md#a-kind-of-rule-of-your-own)"
        " is made.",
        {
            f"lakehouse.iceberg.rules.{module}": ()
            for module in (
                "rows",
                "unique_and_references",
                "aggregate_rules",
                "reconciliation",
                "size_schema_and_freshness",
            )
        },
    ),
    Part(
        "Options of rules",
        "What rules take besides, by name.",
        {"lakehouse.tables.rule": ("ThresholdOptions", "CountOptions", "BoundOptions")},
    ),
    Part(
        "SQL",
        "For functions that write SQL: names and values, and delivered text as a value.",
        {
            "lakehouse.tables.casts": ("cast_sql",),
            "lakehouse.tables.number_and_date_forms": (),
            "lakehouse.tables.quoting": ("identifier", "literal", "literals"),
        },
    ),
    Part(
        "Tests",
        'Fixtures of pytest, where a `conftest.py` says `pytest_plugins = ["lakehouse.testing"]`'
        " ([trying](trying.md#in-a-test)), and what they are.",
        {
            "lakehouse.testing": ("spark", "declared_tables", "try_table"),
            "lakehouse.testing.table_fixture": ("TryTable", "TriedTable", "RefusedRow"),
        },
    ),
    Part(
        "Projects",
        "What the module of a project's definitions says ([your data](your-data.md#a-project)).",
        {"lakehouse.project": ("Project",)},
    ),
)
"""What is public."""


def public_names() -> Iterator[tuple[str, str]]:
    """Yield each module and name that the page tells of."""
    for part in PARTS:
        for module, names in part.by_module.items():
            yield from ((module, name) for name in names)


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *_contents(), "", *map(_section, PARTS), _errors()])


def untold(one: Told) -> list[str]:
    """Return parameters without a description, also in the text of the whole."""
    words = re.findall(r"\w+", " ".join(one.doc.paragraphs))
    return [
        parameter.name
        for parameter in one.parameters
        if not (parameter.doc or parameter.options or parameter.marks)
        and parameter.name not in words
    ]


def _contents() -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    for part in PARTS:
        names = [name for names in part.by_module.values() for name in names]
        links = ", ".join(f"[`{name}`](#{name.lower()})" for name in names)
        yield f"| [{part.title}](#{part.title.lower().replace(' ', '-')}) | {links} |"
    yield "| [Errors](#errors) | |"


def _section(part: Part) -> str:
    lines = [f"## {part.title}\n", f"{part.about}\n"]
    for module, names in part.by_module.items():
        lines.append(f"```python\n{_import(module, names)}\n```\n")
        lines += [_entry(told(module, name)) for name in names]
    return "\n".join(lines)


def _import(module: str, names: Sequence[str]) -> str:
    return _in_lines(f"from {module} import ", ", ".join(names), names, "()")


def _in_lines(
    before: str, short: str, parts: Sequence[str], brackets: str, end: str = ""
) -> str:
    """Return a list of things on one line, or where it is too long on one for each."""
    if len(before + short + end) <= _WIDTH:
        return before + short + end
    lines = "".join(f"    {part},\n" for part in parts)
    return f"{before}{brackets[0]}\n{lines}{brackets[1]}{end}"


def _entry(one: Told) -> str:
    lines = [f"### {one.name}\n"]
    if one.returns is not None:
        lines.append(f"```text\n{_signature(one)}\n```\n")
    lines += [f"{paragraph}\n" for paragraph in one.doc.paragraphs]
    lines += _details(one)
    lines += [f"Raises `{name}`: {text}\n" for name, text in one.doc.raises.items()]
    return "\n".join(lines)


def _details(one: Told) -> Iterator[str]:
    if one.value:
        yield f"`{one.value}`\n"
    elif one.columns:
        rows = [(f"`{it.name}`", f"`{it.type}`", it.doc) for it in one.columns]
        yield _table(("column", "type", ""), rows)
    elif one.returns is None and one.parameters:
        yield _table(("", "type", "if left out", ""), [*map(_field, one.parameters)])
    else:
        told_of = [*filter(None, map(_item, one.parameters))]
        yield from ["\n".join([*told_of, ""])] if told_of else []


def _field(parameter: Parameter) -> Sequence[str]:
    default = "" if parameter.default is None else f"`{parameter.default}`"
    return f"`{parameter.name}`", f"`{parameter.type}`", default, parameter.doc


def _item(parameter: Parameter) -> str:
    if parameter.options:
        name = parameter.options
        return f"- `{parameter.name}`: [`{name}`](#{name.lower()})."
    return f"- `{parameter.name}`: {parameter.doc}" if parameter.doc else ""


def _signature(one: Told) -> str:
    parts = [str(parameter) for parameter in one.parameters]
    name = "try_table" if one.name == "TryTable" else one.name
    return _in_lines(name, f"({', '.join(parts)})", parts, "()", f" -> {one.returns}")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads)]
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


def _errors() -> str:
    about, tree, what_each_says = (inspect.getdoc(lakehouse.errors) or "").split("\n\n")
    return "\n".join(
        [
            "## Errors\n",
            f"{about} They are in `lakehouse.errors`.",
            f"{what_each_says}\n",
            f"```text\n{inspect.cleandoc(tree)}\n```\n",
        ]
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
