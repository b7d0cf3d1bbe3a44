"""Setup of an emulated AWS account for benchmarks."""

import os
from dataclasses import replace
from pathlib import Path

import boto3

from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.jar_download import fetch


def environment_of(address: str) -> dict[str, str]:
    """Return the environment for the account at an address."""
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": address,
        "LAKEHOUSE_DEPLOYMENT": "aws",
        "LAKEHOUSE_BUCKET": "lake",
    }


def prepared_account(home: Path) -> Settings:
    """Create the bucket and fetch the jars; return the settings with a home."""
    where = {"LocationConstraint": os.environ["AWS_REGION"]}
    boto3.client("s3").create_bucket(
        Bucket=os.environ["LAKEHOUSE_BUCKET"], CreateBucketConfiguration=where
    )
    settings = replace(Settings.from_env(), home=home)
    fetch(settings, lambda _: None, jars.s3a())
    return settings
