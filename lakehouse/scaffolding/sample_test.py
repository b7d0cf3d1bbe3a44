"""The text of a test that lands a feed's sample, and compares what silver has of it."""

from lakehouse.scaffolding.code_layout import Layout, quoted_text
from lakehouse.scaffolding.feed_plan import FeedPlan
from lakehouse.scaffolding.sample_rows import Sample


def sample_test_text(
    plan: FeedPlan, sample: Sample, layout: Layout, *, has_fixtures: bool
) -> str:
    """Return the text of the file.

    :param has_fixtures: whether the tests beside it have the fixtures `spark` and `settings`;
        else it opens a session of its own.
    """
    imports = ["from pathlib import Path"]
    if any(_is_decimal(plan, name) for name in sample.sums):
        imports.insert(0, "from decimal import Decimal")
    if not has_fixtures:
        imports.insert(0, "from dataclasses import replace")
    own = [
        "from lakehouse.definitions import FEEDS, TABLES, definitions",
        "from lakehouse.iceberg.metadata.catalog import Catalog",
        "from lakehouse.ingestion.feed_runs import ingest",
    ]
    if not has_fixtures:
        own.append("from lakehouse.settings import Settings")
    head = [
        layout.docstring(f"The feed `{plan.name}`: its sample, landed and typed."),
        "\n".join(imports),
        "\n".join(own),
        f'SAMPLE = Path(__file__).with_name("{sample_name(plan)}")',
    ]
    return "\n\n".join(head) + "\n\n\n" + _function(plan, sample, layout, has_fixtures) + "\n"


def sample_name(plan: FeedPlan) -> str:
    """Return the name of the sample's file, which stands beside the test."""
    return f"{plan.name}_sample.csv"


def _function(plan: FeedPlan, sample: Sample, layout: Layout, has_fixtures: bool) -> str:
    parameters = "spark, settings" if has_fixtures else "tmp_path"
    lines = [f"def test_the_sample_of_{plan.name}_is_typed({parameters}):"]
    if not has_fixtures:
        lines.append("    settings = replace(Settings.from_env(), home=tmp_path)")
    lines += [
        f'    feed = FEEDS["{plan.name}"]',
        "    result = ingest(definitions, TABLES, settings, feed, path=str(SAMPLE))",
        "",
        "    assert result.success",
        "    assert not result.quarantined",
        f'    silver = Catalog.of(settings).load("{plan.silver}")',
        "    rows = silver.scan().to_arrow().to_pylist()",
        f"    assert len(rows) == {sample.rows}",
    ]
    for name, total in sample.sums.items():
        expected = f'Decimal("{total}")' if _is_decimal(plan, name) else str(int(total))
        lines.append(f'    assert sum(row["{name}"] or 0 for row in rows) == {expected}')
    if plan.days is not None and sample.days:
        days = f'{{str(row["{plan.days.silver_name}"]) for row in rows}}'
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
