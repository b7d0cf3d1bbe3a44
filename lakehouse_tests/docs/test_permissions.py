"""The permissions that a page lists are those that the calls to AWS need."""

import json
import re
from pathlib import Path

import pytest

from lakehouse_tests.docs.markdown import ROOT, sections

pytestmark = pytest.mark.unit

NEEDED = {
    "abort_multipart_upload": {"s3:AbortMultipartUpload"},
    "copy": {"s3:GetObject", "s3:PutObject"},
    "delete_object": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
    "delete_objects": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
    "download_file": {"s3:GetObject"},
    "get_bucket_versioning": {"s3:GetBucketVersioning"},
    "get_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "get_tables": {"glue:GetTables"},
    "head_object": {"s3:GetObject"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "list_objects_v2": {"s3:ListBucket"},
    "put_object": {"s3:PutObject"},
    "upload_file": {"s3:PutObject"},
}
"""By what boto3 calls it, what a call to S3 or Glue needs: the service authorization reference of
AWS (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html).
"""
ELSEWHERE = {
    "batch_stop_job_run",
    "cancel_job_run",
    "describe_cluster",
    "get_job_run",
    "publish",
    "run_job_flow",
    "start_job_run",
    "terminate_job_flows",
}
"""Of jobs and topics, whose permissions stand where the pages tell of these."""
_CATALOG = re.compile(
    r"create_(namespace|table)|(list|load|namespace|register|table)_|get_server"
)
"""Of PyIceberg's catalog, whose calls are those of Glue."""
_CALL = re.compile(r"""client\.([a-z_0-9]+)\(|get_paginator\(\s*"([a-z_0-9]+)"\)""")


def listed() -> set[str]:
    """The actions of the policy on the page."""
    blocks = (
        block
        for section in sections(ROOT / "docs" / "deploying.md")
        for block in section.blocks
        if block.language == "json"
    )
    policy = json.loads(next(iter(blocks)).text)
    return {action for statement in policy["Statement"] for action in statement["Action"]}


def called() -> set[str]:
    """What the lakehouse calls of clients of AWS, PyIceberg's catalog left out."""
    modules = (path.read_text() for path in (ROOT / "lakehouse").rglob("*.py"))
    text = "\n".join(
        module for module in modules if re.search(r"boto|storage\.s3|bucket", module)
    )
    names = {first or second for first, second in _CALL.findall(text)}
    return {name for name in names if not _CATALOG.match(name)} - ELSEWHERE


def test_each_call_to_a_bucket_has_its_permission_in_the_policy():
    assert called() - {"get_paginator"} <= NEEDED.keys()
    needed = set().union(*(NEEDED[name] for name in called() & NEEDED.keys()))
    assert needed <= listed()


def test_each_call_of_the_catalog_to_glue_has_its_permission_in_the_policy():
    from pyiceberg.catalog import glue

    text = Path(glue.__file__).read_text()
    operations = set(re.findall(r"self\.glue\.([a-z_]+)\(", text))
    never = {"delete_database", "update_database", "get_paginator", "close"}
    needed = {
        "glue:" + "".join(part.capitalize() for part in name.split("_"))
        for name in operations - never
    }
    assert needed <= listed()
