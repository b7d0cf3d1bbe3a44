"""Short ids go from the columns of a file that names them in its header."""

import pytest

from lakehouse.privacy.places.csv_columns import patch_columns
from lakehouse_tests.privacy.places.a_person import finder

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"customer_id,rows\n7,7\n8,7\n", b"customer_id,rows\n*,7\n8,7\n"),
        (b"rows;customer_id\r\n7;007\r\n7;8", b"rows;customer_id\r\n7;***\r\n7;8"),
        (b'"customer_id"\t"a"\n"7"\t"7"\n', b'"customer_id"\t"a"\n"*"\t"7"\n'),
        (b'a,customer_id\n"x,\n""7""",7', b'a,customer_id\n"x,\n""7""",*'),
        (b"\xef\xbb\xbfcustomer_id,a\n7,b", b"\xef\xbb\xbfcustomer_id,a\n*,b"),
        (b"a,customer_id\n,7\n\n7,\n", b"a,customer_id\n,*\n\n7,\n"),
        (b'customer_id\n"7', b'customer_id\n"*'),
    ],
)
def test_an_id_goes_from_its_column_alone(tmp_path, before, after):
    file = tmp_path / "a.csv"
    file.write_bytes(before)

    assert patch_columns(finder().wanted, file, is_dry=True) == 1
    assert file.read_bytes() == before
    assert patch_columns(finder().wanted, file, is_dry=False) == 1
    assert file.read_bytes() == after
    assert patch_columns(finder().wanted, file, is_dry=False) == 0


@pytest.mark.parametrize("content", [b"", b"\n", b"a,b\n7,7\n", b"customer_id"])
def test_another_file_is_left(tmp_path, content):
    file = tmp_path / "a.csv"
    file.write_bytes(content)

    assert patch_columns(finder().wanted, file, is_dry=False) == 0
    assert file.read_bytes() == content


def test_an_id_that_others_have_is_left(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"customer_id\n7\n")

    assert patch_columns(finder("7").wanted, file, is_dry=False) == 0
