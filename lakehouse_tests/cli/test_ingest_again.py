"""Feeds that lack a table are ingested again while that helps; the ingest is a stub."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakehouse.cli.deliveries import ingest
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.runs.run_result import AssetResult, RunResult
from lakehouse.tables.feed import Feed, FeedColumn

pytestmark = pytest.mark.unit


def ingested(
    needs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[IngestResult]]:
    """Ingest feeds that need tables of others: which were, in order, and what was told."""
    done: list[str] = []
    computed: set[str] = set()

    def ingest_one(_: object, name: str, __: object = None) -> IngestResult:
        done.append(name)
        is_lacking = bool(needs[name]) and needs[name] not in computed
        if not is_lacking:
            computed.add(name)
        return result_of(name, is_lacking=is_lacking)

    monkeypatch.setattr(ingest, "ingest_one", ingest_one)
    state = cast(Any, SimpleNamespace())
    return done, list(ingest._ingest_each(state, list(needs), None))


def result_of(name: str, *, is_lacking: bool) -> IngestResult:
    feed = Feed(name, [FeedColumn("id", "Number.")], f"bronze.{name}")
    table = f"silver.{name}"
    if not is_lacking:
        return IngestResult(
            feed, (RunResult("1", True, (AssetResult(table, "published", {}),)),)
        )
    failed = AssetResult(table, "failed", {}, "There is no table.", "TableNotFound")
    return IngestResult(feed, (RunResult("1", False, (failed,)),))


def test_a_chain_of_feeds_is_ingested_until_each_has_its_tables(monkeypatch):
    needs = {"a": "b", "b": "c", "c": "d", "d": ""}
    done, told = ingested(needs, monkeypatch)
    assert "".join(done) == "abcd" + "abc" + "ab" + "a"
    assert all(result.success for result in told)


def test_where_nothing_more_comes_to_have_its_tables_that_is_told_once(monkeypatch):
    done, told = ingested({"a": "b", "b": "nowhere", "c": ""}, monkeypatch)
    assert "".join(done) == "abc" + "ab"
    failed = [result.feed.name for result in told if not result.success]
    assert failed == ["a", "b"]


def test_a_feed_by_itself_is_ingested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done, (told,) = ingested({"a": "nowhere"}, monkeypatch)
    assert done == ["a"]
    assert not told.success
