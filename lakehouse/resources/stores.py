"""Where a deployment's delivered files stand."""

from lakehouse.errors import UsageError
from lakehouse.resources.object_store import LocalObjectStore, ObjectStore
from lakehouse.settings import Settings


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of a deployment: the home's folders.

    :raises UsageError: on `aws`, whose inbox is in the bucket.
    """
    if settings.deployment == "aws":
        raise UsageError(
            f"The inbox of the deployment 'aws' is in the bucket {settings.bucket}; feeds are read from folders only.",
            next_step="Write to its tables with `lakehouse sql --write`, or unset LAKEHOUSE_DEPLOYMENT to ingest here.",
        )
    return LocalObjectStore(settings.home)
