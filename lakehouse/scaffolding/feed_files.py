"""All files that a new feed is: the two declarations, a test and its sample."""

from pathlib import Path

from lakehouse.scaffolding.assets_folder import AssetsFolder
from lakehouse.scaffolding.bronze_text import bronze_text
from lakehouse.scaffolding.code_layout import Layout
from lakehouse.scaffolding.feed_plan import FeedPlan
from lakehouse.scaffolding.sample_rows import Sample
from lakehouse.scaffolding.sample_test import sample_name, sample_test_text
from lakehouse.scaffolding.silver_text import silver_text


def feed_files(plan: FeedPlan, sample: Sample, folder: AssetsFolder) -> dict[Path, str]:
    """Return the text of each file by its path; nothing is written."""
    layout = Layout(folder.line_length)
    package = folder.package
    test = sample_test_text(plan, sample, folder)
    texts = {
        folder.table_path(plan.bronze): bronze_text(plan, package, layout),
        folder.table_path(plan.silver): silver_text(plan, package, layout),
        folder.tests / f"test_{plan.name}.py": test,
        folder.tests / sample_name(plan): sample.text,
    }
    return folder.with_packages(texts)
