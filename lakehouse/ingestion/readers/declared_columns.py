"""The check that a file without a header row has columns of its feed."""

from collections.abc import Collection

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.csv_header import expected_header
from lakehouse.tables.feed import Feed


def require_declared(feed: Feed, names: Collection[str]) -> None:
    """Check that a file has one declared column at least.

    :param names: the file's columns, as bronze calls them.
    :raises FileRejected: it has none.
    """
    if set(names).isdisjoint(feed.column_names):
        raise FileRejected(
            "no declared column",
            found=f"{len(names)} columns, none of them declared",
            expected=expected_header(feed),
            next_step="Deliver a file of this feed, or correct the names of the columns.",
        )
