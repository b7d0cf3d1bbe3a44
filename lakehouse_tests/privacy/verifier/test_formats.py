"""A person is found in the decoded content of each format."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakehouse_tests.privacy.verifier.someone import EMAIL, PERSON, PHONE, searched, written

pytestmark = pytest.mark.unit

ROWS = {"client": [1, 2, 4711], "mail": ["a@b.c", EMAIL, None]}
DATA = "warehouse/bronze/raw-0f8fad5bd9cb469fa16570867728950e/data"


def found(report, **expected):
    """Return the findings that have some attributes."""
    return [
        finding
        for finding in report.findings
        if all(getattr(finding, name) == value for name, value in expected.items())
    ]


def parquet(home, table, name="a.parquet", **options):
    file = written(home, f"{DATA}/{name}")
    pq.write_table(table, file, **options)
    return file


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_is_read_with_any_compression(tmp_path, codec, dictionary):
    table = pa.table(ROWS)
    parquet(
        tmp_path,
        table,
        compression=codec,
        use_dictionary=dictionary,
        write_statistics=False,
    )

    report = searched(tmp_path)

    (row_id,) = found(report, kind="id", how="column")
    (mail,) = found(report, how="decoded UTF-8")
    assert (row_id.column, mail.column) == ("client", "mail")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([4711], pa.int32()),
        pa.array([4711.0]),
        pa.array([" +004711 "]),
        pa.array(["4711"], pa.large_string()),
        pa.array([b"4711"], pa.binary()),
        pa.array([4711], pa.decimal128(10, 0)),
        pa.array(["4711", "4711"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_an_id_of_any_type_is_compared(tmp_path, values):
    parquet(tmp_path, pa.table({"client": values}), write_statistics=False)

    assert found(searched(tmp_path), kind="id", how="column", column="client")


def test_fields_of_nested_columns_are_read(tmp_path):
    table = pa.table(
        {
            "row": [{"client": 4711}],
            "all": [[{"text": EMAIL}]],
            "by_name": pa.array([[(EMAIL, 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    parquet(tmp_path, table, write_statistics=False, compression="zstd")

    report = searched(tmp_path)

    assert found(report, kind="id", column="row.client")
    assert found(report, column="all.text") or found(report, column="all")
    assert found(report, column="by_name.key")


def test_a_long_integer_is_found_in_a_column_of_any_name(tmp_path):
    parquet(tmp_path, pa.table({"anything": [1, int(PHONE)]}))

    (finding,) = found(searched(tmp_path), how="decoded integer")

    assert finding.column == "anything"


def test_a_short_integer_is_found_only_in_declared_columns(tmp_path):
    parquet(tmp_path, pa.table({"anything": [4711]}))

    assert searched(tmp_path).findings == ()


def test_orc_is_read(tmp_path):
    orc.write_table(pa.table(ROWS), written(tmp_path, f"{DATA}/a.orc"), compression="zstd")

    report = searched(tmp_path)

    assert found(report, kind="id", how="column")
    assert found(report, how="decoded UTF-8", column="mail")


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_avro_is_read_with_any_compression(tmp_path, codec):
    fields = [{"name": "client", "type": "long"}, {"name": "note", "type": "string"}]
    schema = {"type": "record", "name": "row", "fields": fields}
    records = [{"client": 1, "note": "-"}, {"client": 4711, "note": f"see {EMAIL}"}]
    with written(tmp_path, f"{DATA}/a.avro").open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec)

    report = searched(tmp_path)

    assert found(report, kind="id", how="column", column="client")
    assert found(report, kind="personal value", how="decoded UTF-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[{"client": 1}, {"client": 4711}]'),
        ("a.jsonl", '\ufeff{"client": 1}\n{"client": " 04711"}\n{"cl'),
        ("a", '{"rows": [{"client": 4711}]}'),
    ],
)
def test_a_delivered_json_file_is_compared_by_its_fields(tmp_path, name, text):
    written(tmp_path, f"archive/raw/{name}", text)

    assert found(searched(tmp_path), kind="id", column="client")


def test_a_delivered_file_is_compared_by_its_header(tmp_path):
    rows = [["client", "note"], ["1", "two\nlines"], [" +0004711", ""]]
    for key, delimiter in (("inbox/raw/a.csv", ","), ("rejected/raw/b", ";")):
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(rows)
        written(tmp_path, key, f"\ufeff{text.getvalue()}")

    findings = found(searched(tmp_path), kind="id", column="client")

    assert [finding.file for finding in findings] == ["inbox/raw/a.csv", "rejected/raw/b"]


@pytest.mark.parametrize(
    "text",
    [
        "client,note\n1,a\n4711,b\n",
        "client,note\n1,a\n4711,b,too many\n",
        "client,note\n1,a\n4711\n",
        "client,client\n1,\n,4711\n",
        'client,note\r\n1,"two\r\nlines"\r\n 4711 ,\r\n',
        "\ufeff client ,note\n1,a\n4711,b\n",
        '"client","note"\n"1","a ""quoted"" word"\n"+4711",""\n',
        "client\n1\n4711",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_a_file_of_any_form_is_compared(tmp_path, text, encoding):
    text = text.replace("a", "ä") if encoding == "latin-1" else text
    written(tmp_path, "inbox/raw/a.csv", text.replace("\ufeff", "").encode(encoding))

    (finding,) = found(searched(tmp_path), kind="id")

    assert finding.column == "client"


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("gz", gzip.compress),
        ("zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
        ("gz.gz", lambda content: gzip.compress(gzip.compress(content))),
        ("gz", lambda content: gzip.compress(content[:9]) + gzip.compress(content[9:])),
    ],
)
def test_compressed_files_are_read(tmp_path, ending, pack):
    written(
        tmp_path, f"archive/raw/a.csv.{ending}", pack(f"client,mail\n4711,{EMAIL}\n".encode())
    )

    report = searched(tmp_path)

    assert found(report, how="UTF-8")
    assert found(report, kind="id", column="client")
    assert report.not_proved == ()


def test_members_of_an_archive_are_read(tmp_path):
    with zipfile.ZipFile(written(tmp_path, "a.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b/notes.txt", EMAIL)
        archive.writestr(f"{PHONE}.txt", "")
        archive.writestr("c.gz", gzip.compress(EMAIL.encode()))

    report = searched(tmp_path)

    assert found(report, file="a.zip", inside="zip b/notes.txt", how="UTF-8")
    assert found(report, file="a.zip", how="name of a file, UTF-8")
    assert found(report, file="a.zip", inside="zip c.gz › gzip")


def test_a_file_that_is_compressed_too_often_is_a_gap(tmp_path):
    content = EMAIL.encode()
    for _ in range(4):
        content = gzip.compress(content)
    written(tmp_path, "a.gz", content)

    (gap,) = searched(tmp_path).gaps

    assert gap.gap == "not looked into"


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("a.parquet", b"PAR1 and no more"),
        ("a.avro", b"Obj\x01 and no more"),
        ("a.orc", b"ORC and no more"),
        ("a.db", b"SQLite format 3\0 and no more"),
        ("a.gz", gzip.compress(b"x" * 10_000, mtime=0)[:-9]),
        ("a.zst", pa.compress(bytes(range(256)) * 10, "zstd", asbytes=True)[:-9]),
        ("b.parquet", b"no magic"),
        ("b.gz", b"no magic"),
    ],
)
def test_a_file_that_cannot_be_decoded_is_a_gap(tmp_path, key, content):
    written(tmp_path, key, content + EMAIL.encode())

    report = searched(tmp_path)

    assert {gap.gap for gap in report.gaps} == {"not readable"}
    assert found(report, how="UTF-8"), "its bytes are searched"
    assert not report.is_proof


@pytest.mark.parametrize("text", ["ORCID,client\n1,4711\n", "BZhang,client\n1,4711\n"])
def test_a_text_that_begins_like_another_format_is_a_text(tmp_path, text):
    written(tmp_path, "inbox/raw/a", text)

    report = searched(tmp_path)

    assert found(report, column="client")
    assert report.gaps == ()


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_compression_that_is_not_decoded_prevents_a_proof(tmp_path, pack):
    written(tmp_path, "notes", pack(EMAIL.encode()))

    (gap,) = searched(tmp_path).gaps

    assert gap.gap == "not looked into"


def test_a_damaged_page_of_parquet_is_a_gap(tmp_path):
    file = parquet(tmp_path, pa.table({"client": list(range(1000))}), write_page_checksum=True)
    content = bytearray(file.read_bytes())
    content[60] ^= 255
    file.write_bytes(content)

    assert searched(tmp_path).gaps


@pytest.mark.parametrize("key", ["a.parquet", "a.db", "a.json", "inbox/raw/a.csv", "a.gz"])
def test_an_empty_file_contains_no_one(tmp_path, key):
    written(tmp_path, key)

    report = searched(tmp_path)

    assert (report.findings, report.gaps) == ((), ())


def test_similar_values_are_not_found(tmp_path):
    parquet(tmp_path, pa.table({"client": [47110, 14711], "mail": ["maria@example.org", ""]}))
    written(tmp_path, "inbox/raw/a.csv", "client\n47110\n")

    assert searched(tmp_path, person=PERSON).findings == ()
