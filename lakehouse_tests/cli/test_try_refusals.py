"""What `lakehouse try` says, without Java, of a table or a file that it cannot try."""

import pytest

pytestmark = pytest.mark.unit


def test_a_file_that_its_feed_would_reject_says_why(lakehouse, tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("id,name\n1,Apple\n", encoding="utf-8")
    ran = lakehouse("try", "silver.fruits", "--file", str(file))

    assert (ran.code, ran.out) == (1, [])
    assert "other.csv would be rejected by the feed fruits: " in ran.err[0]
    assert "expected" in ran.err[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bronze.raw_fruits", "Run lakehouse try bronze.raw_fruits --file FILE."),
        ("silver.fruits", "silver.fruits reads bronze.raw_fruits, which is not there yet."),
        ("monitoring.table_health", "monitoring.table_health is not computed by a function"),
    ],
)
def test_what_cannot_be_tried_says_what_to_do(lakehouse, name, said):
    ran = lakehouse("try", name)

    assert ran.code in (1, 2)
    assert (ran.out, len(ran.err)) == ([], 1)
    assert said in ran.err[0]
