"""Once the values are destroyed, decoded values are compared by their HMACs."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_hmacs, verify
from lakehouse.tables.person import person_hmac
from lakehouse_tests.privacy.verifier.someone import COLUMNS, EMAIL, written

pytestmark = pytest.mark.unit

KEY = b"k" * 32
HMACS = [person_hmac(KEY, "customer_id", "99"), person_hmac(KEY, "customer_id", "4711")]


def searched(home):
    return verify([FolderRoot(home)], by_hmacs(KEY, HMACS, COLUMNS))


def test_all_forms_of_an_id_have_one_hmac():
    assert person_hmac(KEY, "customer_id", " +004711 ") == HMACS[1]
    assert person_hmac(KEY, "merchant_id", "4711") != HMACS[1]


def test_decoded_values_are_compared(tmp_path):
    pq.write_table(
        pa.table({"client": [1, 4711, 4711]}),
        written(tmp_path, "warehouse/bronze/raw/a.parquet"),
    )
    written(tmp_path, "archive/raw/a.csv.gz", gzip.compress(b"client\n1\n04711\n"))
    written(tmp_path, "rejected/raw/a.json", json.dumps([{"client": 4711}]))

    report = searched(tmp_path)

    assert {(item.file, item.person, item.kind) for item in report.findings} == {
        ("warehouse/bronze/raw/a.parquet", 1, "id"),
        ("archive/raw/a.csv.gz", 1, "id"),
        ("rejected/raw/a.json", 1, "id"),
    }


def test_bytes_are_not_searched(tmp_path):
    written(tmp_path, "notes.txt", f"{EMAIL} 4711")

    report = searched(tmp_path)

    assert report.findings == ()
    assert report.as_json()["method"] == "hmacs"
    assert report.is_proof
