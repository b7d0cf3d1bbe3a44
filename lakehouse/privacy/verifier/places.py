"""The purpose of a file, by its path below a home or a bucket."""

import re

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
"""Places of files as they were delivered, with a header that names their columns."""

_METADATA_FOLDER = r"warehouse/(.+/)?metadata/(.+/)?"
_PLACES = [
    (re.compile(pattern, re.DOTALL), place)
    for pattern, place in (
        (_METADATA_FOLDER + r"[^/]+\.(puffin|stats)", STATISTICS),
        (_METADATA_FOLDER + r"snap-[^/]+\.avro", MANIFEST_LIST),
        (_METADATA_FOLDER + r"[^/]+\.avro", MANIFEST),
        (_METADATA_FOLDER + r"[^/]+\.metadata\.json(\.gz)?", METADATA),
        (_METADATA_FOLDER + r"[^/]+", OTHER),
        (r"warehouse/(.+/)?[^/]+_quarantine(-[0-9a-f-]{32,36})?/.+", QUARANTINE),
        (r"warehouse/.+", DATA_FILE),
        (r"rejected/.+\.reason\.json", REASON),
        (r"rejected/.+", REJECTED),
        (r"dagster/(.*compute_logs/.+|.+\.(out|err|complete))", COMPUTE_LOG),
        (r"dagster/.+", DAGSTER),
        (r"logs/(.+/)?spark[^/]*", SPARK_LOG),
        (r"inbox/.+", DELIVERED),
        (r"archive/.+", ARCHIVE),
        (r"staging/.+", STAGING),
        (r"alerts/.+|(alerts\.|heartbeat)[^/]*", ALERTS),
        (r"tmp/.+", TEMPORARY),
        (r"privacy/.+", PRIVACY),
        (r"catalog\.db[^/]*", CATALOG),
    )
]


def place_of(key: str) -> str:
    """Return the purpose of a file."""
    return next((place for pattern, place in _PLACES if pattern.fullmatch(key)), OTHER)
