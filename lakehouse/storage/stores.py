"""The object store of a deployment."""

from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of a deployment: the home's folders, or the bucket."""
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        return open_bucket(settings)
    settings.make_home()
    return LocalObjectStore(settings.home)
