"""Values are found in bytes in any encoding and at any offset."""

import io
import json
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse.privacy.verifier.values import CHUNK_BYTES, ByteSearch, SearchedValues
from lakehouse.tables.person import Person, is_distinctive
from lakehouse_tests.privacy.verifier.someone import EMAIL, PERSON, PHONE

pytestmark = pytest.mark.unit


def search_for(value: str, remaining=()) -> ByteSearch:
    person = Person("customer_id", frozenset(), {"text": frozenset({value})})
    return ByteSearch(SearchedValues([person], remaining))


def hits(content: bytes, search: ByteSearch | None = None, chunk_bytes=CHUNK_BYTES):
    search = search or ByteSearch(SearchedValues([PERSON]))
    return list(search.find_in_file(io.BytesIO(content), len(content), chunk_bytes))


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("UTF-8", EMAIL.encode()),
        ("UTF-8", EMAIL.upper().encode()),
        ("UTF-8", unicodedata.normalize("NFD", EMAIL).encode()),
        ("Latin-1", EMAIL.encode("latin-1")),
        ("JSON", json.dumps(EMAIL).encode()),
        ("JSON", json.dumps(json.dumps(EMAIL)).encode()),
        ("JSON", json.dumps(EMAIL).replace("/", "\\/").encode()),
        ("JSON", EMAIL.replace("í", "\\u00ED").encode()),
    ],
)
def test_each_encoding_is_found(encoding, written):
    (hit,) = hits(b"before " + written + b" after")

    assert hit.encoding == encoding
    assert 7 <= hit.start < hit.end <= 7 + len(written)


@pytest.mark.parametrize("text", [f"1{PHONE}", f"{PHONE}2"])
def test_a_number_within_a_longer_one_is_another(text):
    assert hits(f" {text} ".encode()) == []
    assert hits(f" {PHONE} ".encode())


def test_a_short_integer_is_not_searched_as_bytes():
    assert hits(b" 4711 ") == []


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1000])
def test_a_value_is_found_once_at_any_window_size(chunk_bytes):
    value = EMAIL.encode()
    content = b"-" * 501 + value + b"." * 300 + value

    found = hits(content, chunk_bytes=chunk_bytes)

    assert [(hit.start, hit.end) for hit in found] == [
        (501, 501 + len(value)),
        (801 + len(value), 801 + 2 * len(value)),
    ]


@given(
    value=st.text(min_size=6, max_size=40),
    before=st.binary(max_size=60),
    after=st.binary(max_size=60),
    chunk_bytes=st.integers(1, 50),
    is_json=st.booleans(),
)
def test_any_value_is_found_anywhere(value, before, after, chunk_bytes, is_json):
    value = value.strip()
    assume(is_distinctive(value) and not value.isdigit())
    written = (json.dumps(value) if is_json else value).encode()

    assert hits(before + written + after, search_for(value), chunk_bytes=chunk_bytes)
