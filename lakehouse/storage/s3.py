"""A bucket as an object store, through dagster-aws's S3 resource."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.settings import Settings
from lakehouse.storage.object_store import PLAIN_TEXT, ObjectStore, StoredObject
from lakehouse.storage.unfinished_files import is_finished

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CopySourceTypeDef, ObjectIdentifierTypeDef


_ADDRESS = re.compile(r"\s*s3a?:(?://([^/]*)/?(.*))?", re.IGNORECASE | re.DOTALL)


def bucket_and_key(address: str) -> tuple[str, str] | None:
    """Return the bucket and the key of an address, each possibly empty; None for other text.

    A key may contain characters that end the path of a URL, such as `#`.
    """
    parts = _ADDRESS.match(address)
    return (parts[1] or "", parts[2] or "") if parts else None


_MISSING = {"404", "NoSuchKey", "NotFound"}
_CHANGED = {"412", "PreconditionFailed", *_MISSING}
_NO_BUCKET = "NoSuchBucket"
_ONE_REQUEST_BYTES = 5 << 30
_MOST_DELETED = 1000
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class S3ObjectStore(ObjectStore):
    """The objects of a bucket. They appear atomically, so there is nothing to wait for.

    Timestamps are in whole seconds, the precision of S3's HEAD request.
    """

    client: "S3Client"
    bucket: str
    settle_seconds: float = 0.0
    poll_seconds: float = 2.0
    """A listing of up to 1,000 keys is one paid request."""

    @property
    def object_errors(self) -> tuple[type[Exception], ...]:
        """Errors that S3 returns; a connection error would affect every object."""
        from boto3 import exceptions
        from botocore.exceptions import ClientError

        return (ClientError, exceptions.S3UploadFailedError)

    def __reduce__(self) -> tuple[Callable[..., "S3ObjectStore"], tuple[object, ...]]:
        """Reopen the bucket in another process, with that process's credentials."""
        meta = self.client.meta
        return _open_again, (self.bucket, meta.region_name, meta.endpoint_url)

    def objects(self, prefix: str) -> list[StoredObject]:
        return self._listed(prefix, is_finished)

    def unfinished(self, prefix: str) -> list[StoredObject]:
        return self._listed(prefix, lambda key: not is_finished(key) and not _is_folder(key))

    def _listed(self, prefix: str, is_meant: Callable[[str], bool]) -> list[StoredObject]:
        items = [
            _seen(item["Key"], item["LastModified"], item["Size"], item["ETag"])
            for page in self._pages("list_objects_v2", prefix)
            for item in page.get("Contents", ())
            if is_meant(item["Key"].removeprefix(prefix))
        ]
        return sorted(items, key=lambda item: (item.modified_at, item.key))

    def _pages(self, operation: Any, prefix: str, **options: str) -> list[dict[str, Any]]:
        """Return the responses of a listing, each with up to a thousand entries.

        :raises UsageError: the bucket does not exist.
        """
        paginator: Any = self.client.get_paginator(operation)
        with self._bucket_is_there():
            return list(paginator.paginate(Bucket=self.bucket, Prefix=prefix, **options))

    def is_being_written(self, key: str) -> bool:  # noqa: ARG002
        return False

    def occupied(self, prefix: str) -> set[str]:
        return {
            item["Prefix"].removeprefix(prefix).rstrip("/")
            for page in self._pages("list_objects_v2", prefix, Delimiter="/")
            for item in page.get("CommonPrefixes", ())
        }

    def stat(self, key: str) -> StoredObject | None:
        from botocore.exceptions import ClientError

        try:
            head = self.client.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise
        return _seen(key, head["LastModified"], head["ContentLength"], head["ETag"])

    def open(self, key: str) -> BinaryIO:
        return self._get(key)

    def _get(self, key: str, **version: str) -> BinaryIO:
        from botocore.exceptions import ClientError

        client: Any = self.client
        try:
            content = client.get_object(Bucket=self.bucket, Key=key, **version)["Body"]
        except ClientError as error:
            if _code(error) in {*_MISSING, "NoSuchVersion"}:
                raise FileNotFoundError(self.uri(key)) from error
            raise
        return cast(BinaryIO, content)

    def move(self, seen: StoredObject, key: str) -> bool:
        """Copy an unchanged object, then remove it; S3 has no rename.

        The copy is never deleted: it may be the only one if the object was removed, and another
        host may have moved the same object here.
        """
        from botocore.exceptions import ClientError

        if self.exists(key):
            raise FileExistsError(f"{self.uri(key)} exists already")
        if self.stat(seen.key) != seen:
            return False
        source: CopySourceTypeDef = {"Bucket": self.bucket, "Key": seen.key}
        try:
            # A large object is copied in parts.
            self.client.copy(
                source, self.bucket, key, ExtraArgs={"CopySourceIfMatch": seen.version}
            )
        except ClientError as error:
            if _code(error) in _CHANGED:
                return False
            raise
        return self.remove(seen) or not self.exists(seen.key)

    def remove(self, seen: StoredObject) -> bool:
        """Remove an unchanged object; S3 denies the request if it was overwritten.

        If the response is lost, the client retries and S3 reports a missing object: it was
        removed.
        """
        from botocore.exceptions import ClientError

        if self.stat(seen.key) != seen:
            return False
        try:
            self.client.delete_object(Bucket=self.bucket, Key=seen.key, IfMatch=seen.version)
        except ClientError as error:
            if _code(error) in _CHANGED:
                return not self.exists(seen.key)
            raise
        return True

    def put(self, source: Path, key: str) -> None:
        """Upload a file, in parts if it is large."""
        with self._bucket_is_there():
            self.client.upload_file(str(source), self.bucket, key)

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Upload a file over an unchanged object, and remove the old version.

        S3 denies the request if the object was overwritten, except for files too large for one
        request. If the response is lost, the client retries and the request is denied: then the
        content is compared.
        """
        from botocore.exceptions import ClientError

        if self.stat(seen.key) != seen:
            return None
        before = self.client.head_object(Bucket=self.bucket, Key=seen.key).get("VersionId")
        try:
            self._overwrite(seen, source)
        except ClientError as error:
            if _code(error) not in _CHANGED:
                raise
            if not self._has_content(seen.key, source):
                return None
        if before:
            self.client.delete_object(Bucket=self.bucket, Key=seen.key, VersionId=before)
        return self.stat(seen.key)

    def _has_content(self, key: str, source: Path) -> bool:
        """Compare an object with a file by content; an ETag is not always a hash."""
        with source.open("rb") as expected:
            digest = hashlib.file_digest(expected, "sha256").digest()
        actual = hashlib.sha256()
        try:
            with self.open(key) as content:
                while block := content.read(_BLOCK_BYTES):
                    actual.update(block)
        except FileNotFoundError:
            return False
        return actual.digest() == digest

    def _overwrite(self, seen: StoredObject, source: Path) -> None:
        if source.stat().st_size > _ONE_REQUEST_BYTES:
            self.put(source, seen.key)
            return
        with source.open("rb") as content:
            self.client.put_object(
                Bucket=self.bucket, Key=seen.key, Body=content, IfMatch=seen.version
            )

    def old_versions(self, prefix: str) -> list[StoredObject]:
        versions = self._versions(prefix)
        return sorted(versions.old, key=lambda item: (item.key, item.modified_at))

    def open_old(self, old: StoredObject) -> BinaryIO:
        return self._get(old.key, VersionId=old.version)

    def remove_old(self, old: StoredObject) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=old.key, VersionId=old.version)

    def all_versions(self, prefix: str) -> list[StoredObject]:
        """List current and old versions and delete markers, with ids as `version`."""
        versions = self._versions(prefix)
        return [*versions.current, *versions.old, *versions.markers]

    def versions_of_removed(self, prefix: str) -> list[StoredObject]:
        """List the versions and delete markers of deleted objects.

        Markers are last: without its marker, an older version would become the current object.
        """
        versions = self._versions(prefix)
        present = {item.key for item in versions.current}
        return [item for item in (*versions.old, *versions.markers) if item.key not in present]

    def _versions(self, prefix: str) -> "_Versions":
        versions = _Versions([], [], [])
        for page in self._pages("list_object_versions", prefix):
            for item in page.get("Versions", ()):
                version = _seen(
                    item["Key"], item["LastModified"], item["Size"], item["VersionId"]
                )
                (versions.current if item["IsLatest"] else versions.old).append(version)
            for item in page.get("DeleteMarkers", ()):
                marker = _seen(item["Key"], item["LastModified"], 0, item["VersionId"])
                versions.markers.append(marker)
        return versions

    def remove_versions(self, versions: Sequence[StoredObject]) -> None:
        """Delete the result of `all_versions` permanently, a thousand per request.

        :raises LakehouseError: S3 denies a deletion.
        """
        for start in range(0, len(versions), _MOST_DELETED):
            objects: list[ObjectIdentifierTypeDef] = [
                {"Key": version.key, "VersionId": version.version}
                for version in versions[start : start + _MOST_DELETED]
            ]
            answer = self.client.delete_objects(
                Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True}
            )
            for denial in answer.get("Errors", ()):
                raise LakehouseError(
                    f"{self.uri(denial['Key'])} was not deleted: {denial['Code']}; expected the"
                    " permissions s3:DeleteObject and s3:DeleteObjectVersion.",
                    next_step="Grant them if they are missing, and run this again.",
                )

    def uploads(self, prefix: str) -> list[StoredObject]:
        """List incomplete uploads, with their ids as `version`, of unknown size."""
        return [
            _seen(upload["Key"], upload["Initiated"], 0, upload["UploadId"])
            for page in self._pages("list_multipart_uploads", prefix)
            for upload in page.get("Uploads", ())
        ]

    def abort_uploads(self, uploads: Sequence[StoredObject]) -> None:
        """Abort the result of `uploads`."""
        for upload in uploads:
            self.client.abort_multipart_upload(
                Bucket=self.bucket, Key=upload.key, UploadId=upload.version
            )

    def discard_uploads(self, prefix: str) -> list[str]:
        uploads = self.uploads(prefix)
        self.abort_uploads(uploads)
        return [upload.key for upload in uploads]

    def remains(self, prefix: str) -> list[StoredObject]:
        return [*self.all_versions(prefix), *self.uploads(prefix)]

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        self.client.put_object(
            Bucket=self.bucket, Key=key, Body=text.encode(), ContentType=content_type
        )

    def remove_folder(self, prefix: str) -> None:
        self.remove_versions(self.all_versions(prefix))
        self.discard_uploads(prefix)

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def spark_uri(self, key: str) -> str:
        return self.uri(key)

    @contextmanager
    def _bucket_is_there(self) -> Iterator[None]:
        from botocore.exceptions import ClientError

        try:
            yield
        except ClientError as error:
            if _code(error) != _NO_BUCKET:
                raise
            raise UsageError(
                f"There is no bucket {self.bucket!r}; expected one that LAKEHOUSE_BUCKET"
                " names.",
                next_step=(
                    f"Create it with `aws s3 mb s3://{self.bucket}`, or set LAKEHOUSE_BUCKET to"
                    " another."
                ),
            ) from error


class _Versions(NamedTuple):
    """The versions below a prefix."""

    current: list[StoredObject]
    old: list[StoredObject]
    markers: list[StoredObject]


@cache
def open_bucket(settings: Settings) -> S3ObjectStore:
    """Return the deployment's bucket, with region and credentials of the AWS chain."""
    # The import takes a second, which a local deployment does not need.
    from dagster_aws.s3 import S3Resource

    assert settings.bucket
    resource = S3Resource(region_name=settings.region, endpoint_url=settings.endpoint_url)
    return S3ObjectStore(resource.get_client(), settings.bucket)


@cache
def _open_again(bucket: str, region: str, endpoint_url: str) -> S3ObjectStore:
    # Executors do not have Dagster.
    import boto3

    client = boto3.client("s3", region_name=region, endpoint_url=endpoint_url)
    return S3ObjectStore(client, bucket)


def _seen(key: str, modified_at: datetime, size_bytes: int, etag: str) -> StoredObject:
    return StoredObject(
        key, modified_at.astimezone(UTC).replace(microsecond=0), size_bytes, etag
    )


def _is_folder(key: str) -> bool:
    return not key or key.endswith(("/", "_$folder$"))


def _code(error: Any) -> str:
    return str(error.response["Error"]["Code"])
