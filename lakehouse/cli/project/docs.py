"""`lakehouse docs`: creates a static site of the tables."""

import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import conclude, count

if TYPE_CHECKING:
    from lakehouse.site.publish_site import PublishedSite


@command("docs")
@click.option(
    "--out",
    metavar="PLACE",
    help=(
        "A folder or s3://bucket/prefix; default: LAKEHOUSE_DOCS, or the folder `site` of the"
        " home."
    ),
)
@click.option("--open", "opens", is_flag=True, help="Open it in a browser; only for a folder.")
def docs(state: State, out: str | None, opens: bool) -> None:
    """Make a static site of the tables, for those who only read.

    The site has an index by layer, and a page for each table with its contract: columns, owner,
    lineage, rules and results, freshness, rows and size, quarantine, open incidents, and
    how to read it. It works from a folder or a web server, contains no scripts, external requests
    or row values, and needs no JVM. A second run writes only changes.
    """
    with state.progress("Making the site"):
        made = _make(state, out)
    files = made.written + made.unchanged
    removed = f", {made.removed} removed" if made.removed else ""
    click.echo(f"{made.place}: {count(files, 'file')}, {made.written} written{removed}")
    if opens:
        _open(made.place)


def _make(state: State, out: str | None) -> "PublishedSite":
    from lakehouse.orchestration.runs.instance import open_instance
    from lakehouse.site.site_job import make_site

    settings, source, now = state.settings, state.project.site_source(), datetime.now(UTC)
    # Before the first run there is no instance and there are no check results.
    if not settings.dagster_home.exists():
        return make_site(source, settings, None, now, out=out)
    with open_instance(settings) as instance:
        return make_site(source, settings, instance, now, out=out)


def _open(place: str) -> None:
    if "://" in place or not webbrowser.open(Path(place).as_uri()):
        conclude((), [f"No browser was found; open {place} in one."], success=False)
