"""The text of a test that computes silver from a feed's sample, and compares what it has of
it.
"""

from lakehouse.scaffolding.assets_folder import FIXTURES, AssetsFolder
from lakehouse.scaffolding.code_layout import Layout, import_lines, quoted_text
from lakehouse.scaffolding.feed_plan import FeedPlan
from lakehouse.scaffolding.sample_rows import Sample


def sample_test_text(plan: FeedPlan, sample: Sample, folder: AssetsFolder) -> str:
    """Return the text of the file; it names the fixtures where the tests beside it have none."""
    layout = Layout(folder.line_length)
    imports = ["from pathlib import Path"]
    if any(_is_decimal(plan, name) for name in sample.sums):
        imports.insert(0, "from decimal import Decimal")
    head = [
        layout.docstring(f"The feed `{plan.name}`: its sample, delivered and typed."),
        "\n".join(imports),
        "\n".join(_tables(plan, folder, layout)),
        *([] if folder.has_fixtures else [f'pytest_plugins = ["{FIXTURES}"]']),
        f'SAMPLE = Path(__file__).with_name("{sample_name(plan)}")',
    ]
    return "\n\n".join(head) + "\n\n\n" + _function(plan, sample, layout) + "\n"


def sample_name(plan: FeedPlan) -> str:
    """Return the name of the sample's file, which stands beside the test."""
    return f"{plan.name}_sample.{'jsonl' if plan.is_typed else 'csv'}"


def _tables(plan: FeedPlan, folder: AssetsFolder, layout: Layout) -> list[str]:
    """Return what is imported of the two tables."""
    bronze, silver = (name.split(".")[1] for name in (plan.bronze, plan.silver))
    imports = [
        (f"{folder.package}.{plan.bronze}", bronze),
        (f"{folder.package}.{plan.silver}", silver),
    ]
    return import_lines(imports, layout.width)


def _function(plan: FeedPlan, sample: Sample, layout: Layout) -> str:
    bronze, silver = (name.split(".")[1] for name in (plan.bronze, plan.silver))
    lines = [
        f"def test_the_sample_of_{plan.name}_is_typed(try_table):",
        f"    delivered = try_table({bronze}, SAMPLE)",
        f"    tried = try_table({silver}, delivered.rows)",
        "",
        "    assert not tried.refused",
        "    assert not tried.failed",
        f"    assert len(tried.rows) == {sample.rows}",
    ]
    for name, total in sample.sums.items():
        expected = f'Decimal("{total}")' if _is_decimal(plan, name) else str(int(total))
        lines.append(f'    assert sum(row["{name}"] or 0 for row in tried.rows) == {expected}')
    if plan.days is not None and sample.days:
        days = f'{{str(row["{plan.days.silver_name}"]) for row in tried.rows}}'
        texts = [quoted_text(day.isoformat()) for day in sample.days]
        lines += _compared(days, texts, layout)
    return "\n".join(lines)


def _compared(found: str, texts: list[str], layout: Layout) -> list[str]:
    whole = f"    assert {found} == {{{', '.join(texts)}}}"
    if len(whole) <= layout.width:
        return [whole]
    return [f"    assert {found} == {{", *(f"        {text}," for text in texts), "    }"]


def _is_decimal(plan: FeedPlan, name: str) -> bool:
    return next(c for c in plan.columns if c.name == name).type.startswith("decimal")
