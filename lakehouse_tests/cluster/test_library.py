"""A project of somebody else on a cluster that sees no file of the driver's: its code runs on
executors, and its tables are those of one machine.
"""

import datetime
import sys
import zoneinfo
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakehouse_tests.cluster import library
from lakehouse_tests.cluster.lake import KINDS, Lake, lake_on
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, and below it the folder of its package."""
    folder = tmp_path_factory.mktemp("stranger")
    Lake(settings_at(folder / "home"), {}, folder).run("init", "library")
    root = folder / "library"
    library.write_code(root / "library")
    return root


def deliver_all(lake: Lake, folder: Path) -> None:
    """Bring all deliveries, in turn by hand and by the inbox."""
    for number in range(len(library.DELIVERIES)):
        by_feed = library.write_files(folder / str(number), number)
        if number % 2:
            for feed, files in by_feed.items():
                lake.run("ingest", feed, "--path", str(files[0].parent))
            continue
        for feed, files in by_feed.items():
            lake.put(feed, *files)
        lake.run("ingest")


def contents(lake: Lake) -> Mapping[str, Counter[str]]:
    """Return the rows of all tables, without what tells of the run."""
    return {name: Counter(map(_as_text, lake.rows(name))) for name in library.TABLES}


def _as_text(row: dict[str, Any]) -> str:
    return repr({name: value for name, value in row.items() if name not in library.STAMPS})


@pytest.fixture(scope="module")
def expected(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the tables are on one machine."""
    folder = tmp_path_factory.mktemp("one_machine")
    here = Lake(settings_at(folder / "home"), {}, project)
    deliver_all(here, folder)
    return contents(here)


def test_one_machine_comes_to_what_plain_python_does(expected):
    figures: dict[str, tuple[int, Decimal]] = {}
    for row in rows_of(expected["silver.loans"]):
        count, fees = figures.get(row["branch"], (0, Decimal(0)))
        figures[row["branch"]] = (count + 1, fees + row["fee"])
    assert figures == library.loans_by_branch()
    found = {row["branch"]: row["loans"] for row in rows_of(expected["gold.branches"])}
    assert found == {name: count for name, (count, _) in figures.items()}
    months = rows_of(expected["gold.loans_by_month"])
    assert sum(row["fees"] for row in months) == sum(fees for _, fees in figures.values())


def rows_of(contents: Counter[str]) -> list[dict[str, Any]]:
    """Return rows that stand as text."""
    names = {"Decimal": Decimal, "datetime": datetime, "zoneinfo": zoneinfo}
    return [eval(text, names) for text in contents.elements()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_comes_to_the_same(cluster, project, expected, aws_settings, tmp_path, kind):
    with lake_on(cluster, aws_settings, kind) as lake:
        there = Lake(
            lake.settings,
            {**lake.env, "LAKEHOUSE_EXECUTOR_PYTHON": sys.executable},
            project,
        )
        deliver_all(there, tmp_path)

        assert contents(there) == expected
        there.run("check", *library.TABLES)
        there.run("preview", "gold.branches")
