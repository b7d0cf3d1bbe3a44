"""What a file is to the lakehouse, by where it stands."""

import re
from pathlib import PurePosixPath

from lakehouse.storage.rejected_files import REASON_ENDING

DATA_FILE = "data file"
MANIFEST = "manifest"
MANIFEST_LIST = "manifest list"
METADATA = "metadata.json"
STATISTICS = "statistics"
QUARANTINE = "quarantine"
DELIVERED = "delivered file"
ARCHIVE = "archive"
REJECTED = "rejected"
REASON = "reason"
STAGING = "staging"
CATALOG = "catalog db"
DAGSTER = "Dagster storage"
COMPUTE_LOG = "compute log"
ALERTS = "alert state"
SPARK_LOG = "spark log"
TEMPORARY = "temporary file"
PRIVACY = "privacy"
OTHER = "other"

DELIVERED_PLACES = frozenset({DELIVERED, ARCHIVE, REJECTED, STAGING})
"""Where files stand as somebody delivered them, with a header that names their columns."""
DATABASE_PLACES = frozenset({CATALOG, DAGSTER})

_FOLDERS = {
    "inbox": DELIVERED,
    "archive": ARCHIVE,
    "staging": STAGING,
    "alerts": ALERTS,
    "tmp": TEMPORARY,
    "privacy": PRIVACY,
}
_COMPUTE_LOG = re.compile(r"(^|/)compute_logs/|\.(out|err|complete)$")
_QUARANTINE = re.compile(r"_quarantine(-[0-9a-f-]{32,36})?$")


def place_of(key: str) -> str:
    """Return the class of place of a file, by its path below a home or a bucket."""
    parts = PurePosixPath(key).parts
    folder = parts[0] if len(parts) > 1 else ""
    name = parts[-1] if parts else ""
    if folder == "warehouse":
        return _table_place(parts)
    if folder == "rejected":
        return REASON if name.endswith(REASON_ENDING) else REJECTED
    if folder == "dagster":
        return COMPUTE_LOG if _COMPUTE_LOG.search(key) else DAGSTER
    if folder:
        is_spark_log = folder == "logs" and name.startswith("spark")
        return SPARK_LOG if is_spark_log else _FOLDERS.get(folder, OTHER)
    if name.startswith("catalog.db"):
        return CATALOG
    return ALERTS if name.startswith(("alerts.", "heartbeat")) else OTHER


def _table_place(parts: tuple[str, ...]) -> str:
    name = parts[-1]
    if "metadata" in parts[1:-1]:
        return _metadata_place(name)
    if any(map(_QUARANTINE.search, parts[1:-1])):
        return QUARANTINE
    return DATA_FILE


def _metadata_place(name: str) -> str:
    if name.endswith((".puffin", ".stats")):
        return STATISTICS
    if name.endswith(".avro"):
        return MANIFEST_LIST if name.startswith("snap-") else MANIFEST
    is_metadata = name.endswith((".metadata.json", ".metadata.json.gz"))
    return METADATA if is_metadata else OTHER
