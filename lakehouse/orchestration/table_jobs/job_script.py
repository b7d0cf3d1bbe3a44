"""Entry script of an AWS job: downloads and unpacks the code, then computes the table.

It is a separate object in the bucket and cannot import the lakehouse before that.
"""

import sys
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

CODE_ARGUMENT = "--lakehouse-code"


def fetch_code(url: str) -> Path:
    """Download an archive from the bucket and return its path."""
    import boto3

    place = urlsplit(url)
    file = Path(tempfile.mkdtemp(prefix="lakehouse-")) / "code.zip"
    boto3.client("s3").download_file(place.netloc, place.path[1:], str(file))
    return file


def unpack(archive: Path) -> Path:
    """Unpack an archive into a folder of the same name, and return the folder."""
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder


if __name__ == "__main__":
    code = fetch_code(sys.argv[sys.argv.index(CODE_ARGUMENT) + 1])
    sys.path.insert(0, str(unpack(code)))
    # Every AWS service treats a script without an exit code as successful.
    if status := import_module("lakehouse.table_job").main(code):
        sys.exit(status)
