"""What a job tells arrives, also where an upload fails for good."""

import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from lakehouse.orchestration.table_jobs import job_messages
from lakehouse.orchestration.table_jobs.job_messages import RetryingMessageWriter
from lakehouse.settings import Settings
from lakehouse.storage.s3 import S3ObjectStore, open_bucket

pytestmark = pytest.mark.unit
TO = "jobs/runs/a/messages"


def fail_uploads(store: S3ObjectStore, times: int) -> list[str]:
    """Let the next uploads fail, after all that boto3 tries; return what is filled with them."""
    failed: list[str] = []

    def fail(params: dict[str, Any], **_: Any) -> None:
        if len(failed) < times:
            failed.append(params["url_path"])
            raise EndpointConnectionError(endpoint_url="https://s3.example")

    store.client.meta.events.register("before-call.s3.PutObject", fail)
    return failed


def told(store: S3ObjectStore) -> list[dict[str, Any]]:
    """Return the messages in the bucket, in the order of their reader."""
    lines: list[str] = []
    number = 1
    while store.exists(f"{TO}/{number}.json"):
        lines += store.open(f"{TO}/{number}.json").read().decode().splitlines()
        number += 1
    return [json.loads(line) for line in lines]


def test_messages_whose_upload_failed_are_told_again_and_none_is_lost(
    aws_settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job_messages, "_PAUSE_SECONDS", 0.1)
    store = open_bucket(aws_settings)
    failed = fail_uploads(store, 3)
    messages: list[Any] = [{"method": "log", "params": {"n": n}} for n in range(4)]
    writer = RetryingMessageWriter(store.client, interval=0)
    with writer.open({"bucket": store.bucket, "key_prefix": TO}) as channel:
        for message in messages:
            channel.write_message(message)

    assert len(failed) == 3
    assert told(store) == messages
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "told again" in said[0]
