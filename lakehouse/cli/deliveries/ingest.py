"""`lakehouse ingest`: ingests delivered files with Dagster."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_failures, describe_progress, summarize
from lakehouse.cli.output.printing import complain
from lakehouse.cli.output.record_output import ingest_record, print_records, text_or_json
from lakehouse.errors import UsageError
from lakehouse.tables.quoting import shell_word

if TYPE_CHECKING:
    from lakehouse.ingestion.feed_runs import IngestResult


@command("ingest")
@click.argument("names", metavar="[FEED]...", nargs=-1)
@click.option(
    "--path",
    metavar="PATH",
    help="Ingest these files instead: a file, a folder, an s3:// or https:// address.",
)
@text_or_json
def ingest(state: State, names: tuple[str, ...], path: str | None, form: str) -> None:
    """Ingest the files that wait in an inbox.

    Without names: all feeds. All downstream tables are updated. A file that does not match its
    feed is rejected (exit code 1) and the remaining files are ingested. Rows that violate a rule
    are quarantined. Files of --path stay where they are; a copy is archived if the feed
    archives its files.
    """
    feeds = [state.feed(name).name for name in names] or list(state.feeds)
    if not feeds:
        raise UsageError(
            "No feed is declared; expected one, whose files are ingested.",
            next_step="`lakehouse new feed FILE...` declares one from files of it.",
        )
    if path is not None and len(feeds) != 1:
        raise UsageError(
            f"--path is of one feed, and {len(feeds)} are meant; expected the name of one.",
            next_step=f"Say for example lakehouse ingest {feeds[0]} --path {shell_word(path)}",
        )
    results: list[IngestResult] = []
    try:
        for result in _ingest_each(state, feeds, path):
            results.append(result)
            report(result, is_json=form == "json")
    finally:
        if form == "json":
            print_records(map(ingest_record, results))
    if not all(result.success for result in results):
        click.get_current_context().exit(1)


def _ingest_each(
    state: State, feeds: Sequence[str], path: str | None
) -> "Iterator[IngestResult]":
    """Ingest feeds in turn; repeat those that need a table of a later feed while that helps."""
    remaining, before = feeds, None
    while remaining:
        repeated = []
        for name in remaining:
            result = ingest_one(state, name, path)
            if result.lacking_tables and len(feeds) > 1:
                repeated.append(result)
            else:
                yield result
        lacking = {table for result in repeated for table in result.lacking_tables}
        is_over = lacking == before
        for result in repeated:
            yield result if is_over else result.without_lacking()
        remaining = [] if is_over else [result.feed.name for result in repeated]
        before = lacking


def ingest_one(state: State, name: str, path: str | None = None) -> "IngestResult":
    """Ingest one feed."""
    from lakehouse.ingestion.feed_runs import ingest as ingest_feed

    with state.progress(f"Ingesting {name}") as update:
        return ingest_feed(
            state.project.definitions,
            state.declared,
            state.settings,
            state.feeds[name],
            path=path,
            on_progress=lambda progress: update(describe_progress(progress)),
        )


def report(result: "IngestResult", *, is_json: bool = False) -> None:
    """Print the result of an ingest; failures on standard error, also with JSON."""
    for line in () if is_json else summarize(result):
        click.echo(line)
    for line in describe_failures(result):
        complain(line)
