"""Upload the code of this process as an archive, which a job of any host imports."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.settings import Settings
from lakehouse.spark.project_code import content_digest, process_code, zip_bytes

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

RUNS = "jobs/runs/"
"""Key prefix of requests and messages, with a folder for each run."""
SCRIPT = "jobs/script.py"
"""Key of the job's entry script."""
_CODE = "jobs/code/"
_KEPT_FOR = timedelta(days=30)
_RENEWED_AFTER = timedelta(days=15)


def publish_code(settings: Settings, store: "S3ObjectStore") -> str:
    """Upload the code and the script unless they exist; return the URL of the code."""
    files = process_code(settings)
    key = f"{_CODE}{content_digest(files)}.zip"
    there = store.stat(key)
    # Other processes delete old archives; upload again long before this one is old.
    if there is None or there.modified_at < datetime.now(UTC) - _RENEWED_AFTER:
        _remove_old(store)
        store.client.put_object(Bucket=store.bucket, Key=key, Body=zip_bytes(files))
    script = Path(__file__).with_name("job_script.py").read_bytes()
    if not store.exists(SCRIPT) or store.open(SCRIPT).read() != script:
        store.client.put_object(Bucket=store.bucket, Key=SCRIPT, Body=script)
    return store.uri(key)


def _remove_old(store: "S3ObjectStore") -> None:
    oldest = datetime.now(UTC) - _KEPT_FOR
    for stored in store.objects(_CODE):
        if stored.modified_at < oldest:
            store.remove(stored)
