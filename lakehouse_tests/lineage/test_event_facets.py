"""Rules, partitions and personal columns in events."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.rules.rows import excluded, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import row_count
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Pin,
    Published,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.lineage.event_facets import EventMaker
from lakehouse.lineage.names import DatasetNames
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions

ADDRESS = "one@example.com"
VISITS = IcebergTable(
    name="silver.visits",
    comment="One row for each visit.",
    columns=[
        Column("visitor", "bigint"),
        Column("email", "string", personal=True),
        Column("place", "string"),
    ],
    write=OverwritePartitions("place"),
    partitioning=["place"],
    subject="visitor",
    rules=[
        not_null("place"),
        excluded("email", [ADDRESS], on_failure="block"),
        row_count(low=1, on_failure="warn"),
    ],
)
RUN = Run("a run", Partitions(("here", "there")))
WRITE = BegunWrite(VISITS, "0" * 32, RUN, {"raw": Pin("bronze.raw", 7, 5, 3)})
RESULTS = (
    RuleResult(VISITS.rules[0], 0, 9),
    RuleResult(VISITS.rules[1], 2, 9, sample=[{"email": ADDRESS}]),
    RuleResult(VISITS.rules[2], 0, 9, value=9),
)
PUBLISHED = Published(VISITS.name, "0" * 32, 2**62, added_rows=4, added_files=2, added_bytes=8)


@pytest.fixture
def maker(settings: Settings) -> EventMaker:
    return EventMaker("lakehouse", DatasetNames(Catalog.of(settings)), settings.warehouse)


def assertions(maker: EventMaker, outcome: Outcome) -> list[dict]:
    (output,) = maker.end(WRITE, outcome)["outputs"]
    return output["facets"]["dataQualityAssertions"]["assertions"]


def test_a_rule_is_an_assertion_on_its_column(maker: EventMaker) -> None:
    first, _, last = assertions(maker, replace(PUBLISHED, results=RESULTS))

    assert first == {
        "assertion": "not_null_place",
        "name": "not_null_place",
        "success": True,
        "severity": "warn",
        "column": "place",
        "description": "place is not null",
        "expected": "0 rows",
        "actual": "0 rows",
    }
    assert (last["expected"], last["actual"], last["severity"]) == ("at least 1", "9", "warn")
    assert "column" not in last


def test_a_tolerated_share_is_the_expectation(maker: EventMaker) -> None:
    rule = not_null("place", on_failure="block", fail_above=0.5)
    (assertion,) = assertions(maker, replace(PUBLISHED, results=[RuleResult(rule, 3, 9)]))

    assert (assertion["expected"], assertion["actual"]) == ("at most 0.5 of the rows", "3 rows")
    assert assertion["success"] is True


def test_a_rule_on_personal_columns_has_no_values(
    maker: EventMaker,
) -> None:
    refused = Refused(VISITS.name, "0" * 32, 5, results=RESULTS)
    event = maker.end(WRITE, refused)

    assert ADDRESS not in str(event)
    _, personal, _ = assertions(maker, refused)
    assert (personal["success"], personal["severity"]) == (False, "error")


def test_a_blocked_write_names_its_rules(maker: EventMaker) -> None:
    event = maker.end(WRITE, Refused(VISITS.name, "0" * 32, 5, results=RESULTS))

    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["errorMessage"]["message"] == "Blocked by excluded_email."
    assert event["outputs"][0]["outputFacets"] == {}


def test_an_unchanged_table_is_complete_without_rows(maker: EventMaker) -> None:
    event = maker.end(WRITE, Unchanged(VISITS.name, "0" * 32, 5))

    assert event["eventType"] == "COMPLETE"
    statistics = event["outputs"][0]["outputFacets"]["outputStatistics"]
    assert statistics["rowCount"] == 0


def test_inputs_have_their_snapshots(maker: EventMaker) -> None:
    event = maker.end(WRITE, PUBLISHED)

    (read,) = event["inputs"]
    assert read["facets"]["version"]["datasetVersion"] == "7"
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 3


def test_a_table_that_reads_itself_is_no_input(maker: EventMaker) -> None:
    pins = {"mine": Pin(VISITS.name, 3), "raw": Pin("bronze.raw", 7)}

    assert len(maker.start(replace(WRITE, pins=pins))["inputs"]) == 1


def test_a_lost_race_is_aborted(maker: EventMaker) -> None:
    event = maker.failure(WRITE, ValueError(ADDRESS), had_conflict=True)

    assert event["eventType"] == "ABORT"
    assert ADDRESS not in str(maker.failure(WRITE, ValueError(ADDRESS), had_conflict=False))
