"""Where a deployment's delivered files stand."""

from lakehouse.resources.object_store import LocalObjectStore, ObjectStore
from lakehouse.settings import Settings


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of a deployment: the home's folders, or the bucket.

    :raises SettingsError: when the home cannot be made.
    """
    if settings.deployment == "aws":
        from lakehouse.resources.s3_store import open_bucket

        return open_bucket(settings)
    settings.make_home()
    return LocalObjectStore(settings.home)
