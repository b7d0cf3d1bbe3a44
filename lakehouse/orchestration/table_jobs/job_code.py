"""Upload the code of this process as an archive, which a job of any host imports."""

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


def publish_code(settings: Settings, store: "S3ObjectStore") -> str:
    """Upload the code and the script unless they exist; return the URL of the code."""
    files = process_code(settings)
    key = f"{_CODE}{content_digest(files)}.zip"
    if not store.exists(key):
        store.client.put_object(Bucket=store.bucket, Key=key, Body=zip_bytes(files))
    script = Path(__file__).with_name("job_script.py").read_bytes()
    if not store.exists(SCRIPT) or store.open(SCRIPT).read() != script:
        store.client.put_object(Bucket=store.bucket, Key=SCRIPT, Body=script)
    return store.uri(key)
