"""Customers are erased by one request from a lakehouse that has them in every class of place: of
tables of both row-level modes, in both catalogs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.runs.backfill_runs import backfill
from lakehouse.privacy import run_erasure as erasing
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.erasure_steps import (
    erase_files,
    erase_rows,
    recompute_sums,
    remove_physically,
    scrub,
)
from lakehouse.privacy.proof import prove
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
TAKING = (erase_files, erase_rows, recompute_sums, scrub, remove_physically)
"""The steps that take something; the others write about the request alone."""
SMALL, ALL = Customers(40, 3), Customers(1000, 10)
HOMES = {
    "embedded": ("embedded", SMALL),
    "glue": ("glue", SMALL),
    "embedded, all": ("embedded", ALL),
    "glue, all": ("glue", ALL),
}


@dataclass
class Told:
    """What was seen of an erasure."""

    there: Everywhere
    before: Report
    refs_before: set[str]
    rows_before: Mapping[str, Counter[str]]
    untouched: set[str]
    """The data files that have none of them."""
    curve: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """After each step, in how many files of each class of place somebody was found."""
    refs: dict[str, set[str]] = field(default_factory=dict)
    """After each step, the branches and tags that have rows of them."""
    erasure: Erasure | None = None
    rows_after: Mapping[str, Counter[str]] = field(default_factory=dict)
    paths_after: set[str] = field(default_factory=set)

    def watched(self, step: Callable[[Erasure], None]) -> Callable[[Erasure], None]:
        """Return a step after which everything is searched."""

        def do(erasure: Erasure) -> None:
            step(erasure)
            self.curve[step.__name__] = files_by_place(
                prove(self.there.erasable, erasure.persons)
            )
            self.refs[step.__name__] = self.there.refs_with_them(list(erasure.persons))

        return do


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, spark, tmp_path_factory: pytest.TempPathFactory
) -> Told:
    """What was seen of an erasure of some of the customers."""
    catalog, customers = HOMES[request.param]
    settings = settings_at(tmp_path_factory.mktemp("everywhere") / "home")
    if catalog == "glue":
        settings = on_empty_account(request.getfixturevalue("moto"), settings)
    there = Everywhere(settings, customers)
    there.fill()
    refs = there.refs_with_them(there.persons)
    told = Told(there, there.prove(), refs, there.rows_of_others(), there.paths_of_others())
    steps = [
        (said, told.watched(step) if step in TAKING else step) for said, step in erasing.STEPS
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasing, "STEPS", steps)
        told.erasure = there.erase(now=True)
    told.rows_after, told.paths_after = there.rows_of_others(), there.paths()
    return told


def in_homes(*names: str) -> pytest.MarkDecorator:
    """Run a test on some homes, all but the first in `make soak`: each takes as long as a
    dozen other tests.
    """
    homes = repeated(names, tried=["embedded"], tier="long")
    return pytest.mark.parametrize("told", homes, indirect=True, scope="module")


@in_homes(*HOMES)
def test_each_class_of_place_has_them_before_and_none_after(told: Told) -> None:
    assert told.erasure and told.erasure.proof
    assert {*files_by_place(told.before)} >= DELIVERED | ELSEWHERE | OF_TABLES
    assert told.erasure.request.state == "verified", told.erasure.proof.as_text()
    assert told.erasure.proof.findings == ()
    assert told.erasure.proof.shared != ()


@in_homes(*HOMES)
def test_step_by_step_nothing_is_left(told: Told) -> None:
    curve, refs = told.curve, told.refs

    left = [sum(files.values()) for files in (files_by_place(told.before), *curve.values())]
    assert left == sorted(left, reverse=True)
    assert not DELIVERED & {*curve["erase_files"]}
    assert refs["erase_files"] == told.refs_before
    assert refs["erase_rows"] == set()
    assert not ELSEWHERE & {*curve["scrub"]}
    assert {*curve["scrub"]} == OF_TABLES
    assert curve["remove_physically"] == {}


@in_homes(*HOMES)
def test_branches_and_tags_had_them(told: Told) -> None:
    with_main = {RAW, CLEAN, QUARANTINE, PROFILES, *(table.name for table in VISITS)}

    assert {f"{name} main" for name in with_main} < told.refs_before
    assert {f"{table.name} month_end" for table in VISITS} < told.refs_before
    assert [name for name in told.refs_before if name.startswith(f"{RAW} refused_")]


@in_homes(*HOMES)
def test_everyone_else_keeps_their_rows_and_files(told: Told) -> None:
    assert all(told.rows_before.values())
    assert told.rows_after == told.rows_before
    assert told.untouched
    assert told.untouched <= told.paths_after


@in_homes(*HOMES)
def test_the_sums_are_those_of_the_others(told: Told) -> None:
    assert told.erasure
    assert told.erasure.record.recomputed == (SUMMARY,)
    there = told.there
    name = there.engine.catalog.sql_name
    counts = [
        there.engine.sql(query).collect()[0][0]
        for query in (
            f"SELECT sum(transactions) FROM {name(SUMMARY)}",
            f"SELECT count(*) FROM {name(CLEAN)}",
        )
    ]
    assert counts[0] == counts[1] == sum(told.rows_after[CLEAN].values())


@in_homes("embedded", "embedded, all")
def test_nothing_is_stale(told: Told) -> None:
    assert told.there.stale_tables() == []


@pytest.mark.long
@in_homes("embedded", "embedded, all")
def test_all_checks_pass(told: Told) -> None:
    assert told.there.failed_checks() == []


@pytest.mark.long
@in_homes("embedded", "embedded, all")
def test_erased_rows_stay_out_and_a_new_one_comes_in(told: Told) -> None:
    there, customers = told.there, told.there.customers
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
    new = sum((there.rows_of_others()[RAW] - told.rows_after[RAW]).values())
    assert new == 2
    assert there.failed_checks() == []
