"""Sample files, shipped or generated, for the demo."""

import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from importlib.resources import as_file, files
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed

FIRST_DAY = date(2026, 3, 2)
DAYS = 14


def put_samples(settings: Settings, feed: Feed) -> list[str]:
    """Put the sample files of a feed into its inbox, unless they wait there; return their keys."""
    with as_file(files("lakehouse.sample_data") / feed.name) as folder:
        return _put(settings, feed, sorted(folder.glob("*.csv")))


def put_generated(settings: Settings, feed: Feed) -> list[str]:
    """Generate two weeks of transactions, always the same, as one file per day in the inbox."""
    from lakehouse.sample_data.bnpl.generate import generate

    with tempfile.TemporaryDirectory(prefix="bnpl-") as folder:
        generated = generate(Path(folder), FIRST_DAY, days=DAYS, rows_per_day=500, seed=1)
        return _put(settings, feed, generated.files)


PUT: dict[str, Callable[[Settings, Feed], list[str]]] = {
    "fruits": put_samples,
    "bnpl": put_generated,
}
"""Deliveries of the demo by feed."""


def _put(settings: Settings, feed: Feed, paths: Sequence[Path]) -> list[str]:
    store = open_store(settings)
    keys = {f"{feed.inbox}{path.name}": path for path in paths}
    for key, path in keys.items():
        if not store.exists(key):
            store.put(path, key)
    return list(keys)
