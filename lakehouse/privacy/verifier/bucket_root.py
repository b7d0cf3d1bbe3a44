"""A bucket to search as a whole: noncurrent versions too, where it keeps them."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from lakehouse.privacy.verifier.roots import RootEntry

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_GONE = {"404", "NoSuchKey", "NoSuchVersion", "NotFound"}
_KEEPS_VERSIONS = {"Enabled", "Suspended"}


@dataclass(frozen=True)
class BucketRoot:
    """The objects of a bucket, each version of them, and uploads that were never finished."""

    client: "S3Client"
    bucket: str
    below: str = ""
    """A prefix of keys outside of which nothing is searched."""

    @property
    def name(self) -> str:
        """Return the `s3://` address."""
        return f"s3://{self.bucket}/{self.below}"

    def address(self, title: str) -> str:
        """Return the `s3://` address of an object."""
        return f"s3://{self.bucket}/{title}"

    def entries(self) -> Iterator[RootEntry]:
        """Yield all objects, and what a bucket keeps beside them."""
        status = self.client.get_bucket_versioning(Bucket=self.bucket).get("Status")
        if status in _KEEPS_VERSIONS:
            yield from self._versions()
        else:
            yield from self._objects()
        yield from self._unfinished_uploads()

    def open(self, entry: RootEntry) -> BinaryIO:
        """Open an object by an unnamed copy: it is read twice, and from any position."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            shutil.copyfileobj(self._body(entry), copy)
        except BaseException:
            copy.close()
            raise
        copy.seek(0)
        return copy

    def open_beside(self, entry: RootEntry, name: str) -> BinaryIO | None:
        """Open another object of the same folder; None where there is none."""
        try:
            return self.open(entry.beside(name))
        except FileNotFoundError:
            return None

    def _body(self, entry: RootEntry) -> BinaryIO:
        from botocore.exceptions import ClientError

        try:
            if entry.version:
                answer = self.client.get_object(
                    Bucket=self.bucket, Key=entry.key, VersionId=entry.version
                )
            else:
                answer = self.client.get_object(Bucket=self.bucket, Key=entry.key)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _GONE:
                raise FileNotFoundError(entry.key) from error
            # Such as AccessDenied, or InvalidObjectState of what lies in Glacier.
            raise OSError(code) from error
        return cast(BinaryIO, answer["Body"])

    def _objects(self) -> Iterator[RootEntry]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self.below
        )
        for page in pages:
            for item in page.get("Contents", ()):
                yield RootEntry(item["Key"], item["Size"])

    def _versions(self) -> Iterator[RootEntry]:
        pages = self.client.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=self.below
        )
        for page in pages:
            for item in page.get("Versions", ()):
                # The current version too is read by its name: it may be overwritten meanwhile.
                version = item["VersionId"]
                yield RootEntry(item["Key"], item["Size"], version)

    def _unfinished_uploads(self) -> Iterator[RootEntry]:
        pages = self.client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.bucket, Prefix=self.below
        )
        for page in pages:
            for item in page.get("Uploads", ()):
                problem = "an unfinished upload, whose parts cannot be read"
                yield RootEntry(item["Key"], problem=problem, is_gap=True)
