"""The sample files that are shipped with the package, delivered as any other file."""

from importlib.resources import as_file, files

from lakehouse.ingestion.feed import Feed
from lakehouse.resources.stores import open_store
from lakehouse.settings import Settings


def put_samples(settings: Settings, feed: Feed) -> list[str]:
    """Put the feed's sample files into its inbox, one after the other by name, and return their keys.

    A file of that name that already waits is left as it is.
    """
    store = open_store(settings)
    with as_file(files("lakehouse.sample_data") / feed.name) as folder:
        samples = {f"{feed.inbox}{file.name}": file for file in sorted(folder.glob("*.csv"))}
        for key, file in samples.items():
            if not store.exists(key):
                store.put(file, key)
    return list(samples)
