"""Customers are erased by one request from a lakehouse that has them in every class of place: of
tables of both row-level modes, in both catalogs.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.runs.backfill_runs import backfill
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.verifier import places
from lakehouse.privacy.verifier.report import Report
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.conftest import on_empty_account, settings_at
from lakehouse_tests.examples import repeated
from lakehouse_tests.privacy.story.customers import DAYS, OTHERS_DAY, Customers, file_of, id_of
from lakehouse_tests.privacy.story.everywhere import VISITS, Everywhere, files_by_place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

DELIVERED = {places.DELIVERED, places.ARCHIVE, places.REJECTED}
ELSEWHERE = {
    places.ALERTS,
    places.COMPUTE_LOG,
    places.DAGSTER,
    places.SPARK_LOG,
    places.STAGING,
    places.TEMPORARY,
}
OF_TABLES = {places.DATA_FILE, places.MANIFEST, places.METADATA, places.QUARANTINE}
HOMES = ("embedded", "glue")


@dataclass
class Erased:
    """A lakehouse before and after an erasure."""

    there: Everywhere
    before: Report
    refs_before: set[str]
    rows_before: Mapping[str, Counter[str]]
    untouched: set[str]
    """The data files without erased people."""
    erasure: Erasure
    rows_after: Mapping[str, Counter[str]]
    paths_after: set[str]


@pytest.fixture(scope="module")
def erased(
    request: pytest.FixtureRequest, spark, tmp_path_factory: pytest.TempPathFactory
) -> Erased:
    """A lakehouse from which some of the customers were erased."""
    settings = settings_at(tmp_path_factory.mktemp("everywhere") / "home")
    if request.param == "glue":
        settings = on_empty_account(request.getfixturevalue("moto"), settings)
    there = Everywhere(settings, Customers(40, 3))
    there.fill()
    refs, before = there.refs_with_them(there.persons), there.prove()
    rows, untouched = there.rows_of_others(), there.paths_of_others()
    erasure = there.erase()
    return Erased(
        there, before, refs, rows, untouched, erasure, there.rows_of_others(), there.paths()
    )


def in_homes(*names: str) -> pytest.MarkDecorator:
    """Run a test on some homes, all but the first in `make soak`."""
    homes = repeated(names, tried=["embedded"], tier="long")
    return pytest.mark.parametrize("erased", homes, indirect=True, scope="module")


@in_homes(*HOMES)
def test_each_class_of_place_has_them_before_and_none_after(erased: Erased) -> None:
    assert erased.erasure.proof
    assert {*files_by_place(erased.before)} >= DELIVERED | ELSEWHERE | OF_TABLES
    assert erased.erasure.request.state == "verified", erased.erasure.proof.as_text()
    assert erased.erasure.proof.findings == ()
    assert erased.erasure.proof.shared != ()


@in_homes(*HOMES)
def test_branches_and_tags_had_them(erased: Erased) -> None:
    with_main = {RAW, CLEAN, QUARANTINE, PROFILES, *(table.name for table in VISITS)}

    assert {f"{name} main" for name in with_main} < erased.refs_before
    assert {f"{table.name} month_end" for table in VISITS} < erased.refs_before
    assert [name for name in erased.refs_before if name.startswith(f"{RAW} refused_")]


@in_homes(*HOMES)
def test_everyone_else_keeps_their_rows_and_files(erased: Erased) -> None:
    assert all(erased.rows_before.values())
    assert erased.rows_after == erased.rows_before
    assert erased.untouched
    assert erased.untouched <= erased.paths_after


@in_homes(*HOMES)
def test_the_sums_are_those_of_the_others(erased: Erased) -> None:
    assert erased.erasure.record.recomputed == (SUMMARY,)
    there = erased.there
    name = there.engine.catalog.sql_name
    counts = [
        there.engine.sql(query).collect()[0][0]
        for query in (
            f"SELECT sum(transactions) FROM {name(SUMMARY)}",
            f"SELECT count(*) FROM {name(CLEAN)}",
        )
    ]
    assert counts[0] == counts[1] == sum(erased.rows_after[CLEAN].values())


@in_homes("embedded")
def test_nothing_is_stale(erased: Erased) -> None:
    assert erased.there.stale_tables() == []


@pytest.mark.long
@in_homes("embedded")
def test_all_checks_pass(erased: Erased) -> None:
    assert erased.there.failed_checks() == []


@pytest.mark.long
@in_homes("embedded")
def test_erased_rows_stay_out_and_a_new_one_comes_in(erased: Erased) -> None:
    there, customers = erased.there, erased.there.customers
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    old_and_new = [
        customers.row(0, DAYS[2]),
        customers.row(0, DAYS[2], created=later),
        customers.row(1, DAYS[2]),
    ]
    there.put("inbox/bnpl/all.csv", customers.file_of_all)
    there.put("inbox/bnpl/later.csv", customers.later_file)
    there.put("inbox/bnpl/new.csv", file_of(old_and_new))

    assert there.ingest().success
    assert backfill(definitions, there.settings, CLEAN, DAYS[0], OTHERS_DAY).success

    hers = Counter({str(id_of(0)): 1})
    assert {name: there.ids_in(name) for name in (RAW, CLEAN, QUARANTINE, PROFILES)} == {
        RAW: hers,
        CLEAN: hers,
        QUARANTINE: Counter(),
        PROFILES: hers,
    }
    # What waited in the inbox, and the new file.
    new = sum((there.rows_of_others()[RAW] - erased.rows_after[RAW]).values())
    assert new == 2
    assert there.failed_checks() == []
