"""Where a deployment's delivered files stand: a folder of the home, or a bucket."""

from lakehouse.resources.object_store import LocalObjectStore, ObjectStore
from lakehouse.settings import Settings


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of a deployment."""
    return LocalObjectStore(settings.home)
