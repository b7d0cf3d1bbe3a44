"""What a job of AWS runs: it unpacks the code that it is told, and computes the table that it is
asked for.

It lies in the bucket by itself, so that it imports nothing of the lakehouse until that is
unpacked.
"""

import sys
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

CODE_ARGUMENT = "--lakehouse-code"


def fetch_code(url: str) -> Path:
    """Fetch an archive of the bucket, and return where it is."""
    import boto3

    place = urlsplit(url)
    file = Path(tempfile.mkdtemp(prefix="lakehouse-")) / "code.zip"
    boto3.client("s3").download_file(place.netloc, place.path[1:], str(file))
    return file


def unpack(archive: Path) -> Path:
    """Unpack an archive beside it, and return the folder."""
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder


if __name__ == "__main__":
    code = fetch_code(sys.argv[sys.argv.index(CODE_ARGUMENT) + 1])
    sys.path.insert(0, str(unpack(code)))
    # An end without an exit is a success to every service.
    if status := import_module("lakehouse.table_job").main(code):
        sys.exit(status)
