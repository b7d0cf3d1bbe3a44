"""Values are found as bytes, whatever way they are written in, wherever windows end."""

import base64
import io
import json
import unicodedata
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse.privacy.verifier.byte_forms import base64_middles, truncated_bounds
from lakehouse.privacy.verifier.byte_search import ByteSearch
from lakehouse.privacy.verifier.sought_values import SoughtValues
from lakehouse.tables.person import Person, is_distinctive
from lakehouse_tests.privacy.verifier.someone import EMAIL, PERSON, PHONE

pytestmark = pytest.mark.unit


def search_for(value: str, remaining=()) -> ByteSearch:
    person = Person("customer_id", frozenset(), {"text": frozenset({value})})
    return ByteSearch(SoughtValues.of([person], remaining))


def hits(content: bytes, search: ByteSearch | None = None, **options):
    search = search or ByteSearch(SoughtValues.of([PERSON], ()))
    return list(search.find_in_file(io.BytesIO(content), len(content), **options))


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("UTF-8", EMAIL.encode()),
        ("UTF-8", EMAIL.upper().encode()),
        ("UTF-8", unicodedata.normalize("NFD", EMAIL).encode()),
        ("UTF-16", EMAIL.encode("utf-16-le")),
        ("UTF-16", EMAIL.encode("utf-16-be")),
        ("Latin-1", EMAIL.encode("latin-1")),
        ("JSON-escaped", json.dumps(EMAIL).encode()),
        ("JSON-escaped", json.dumps(json.dumps(EMAIL)).encode()),
        ("JSON-escaped", json.dumps(EMAIL).replace("/", "\\/").encode()),
        ("JSON-escaped", EMAIL.replace("í", "\\u00ED").encode()),
        ("URL-escaped", quote(EMAIL, safe="").encode()),
        ("URL-escaped", quote(EMAIL, safe="").lower().encode()),
        ("URL-escaped", quote_plus(EMAIL, safe="@").encode()),
        ("quoted", EMAIL.replace("'", "''").encode()),
        ("HTML-escaped", EMAIL.replace("'", "&#x27;").encode()),
        ("hex", EMAIL.encode().hex().encode()),
        ("hex", EMAIL.encode().hex().upper().encode()),
        ("base64", base64.b64encode(EMAIL.encode())),
        ("base64", base64.b64encode(b"x" + EMAIL.encode() + b"yz")),
        ("base64", base64.urlsafe_b64encode(b"xy" + EMAIL.encode() + b"z")),
    ],
)
def test_each_encoding_is_found_and_named(encoding, written):
    (hit,) = hits(b"before " + written + b" after")

    assert hit.encoding == encoding
    assert 7 <= hit.start < hit.end <= 7 + len(written)


def test_a_value_with_quotes_of_csv_is_found():
    assert hits(b'"Anna ""Nan"" Lee"', search_for('Anna "Nan" Lee'))


def test_base64_in_another_case_is_none():
    encoded = base64.b64encode(EMAIL.encode())

    assert hits(encoded.swapcase()) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [f"1{PHONE}", f"{PHONE}2"])
def test_a_number_within_a_longer_one_is_another(text, encoding):
    content = f" {text} ".encode(encoding)

    assert hits(content) == []
    assert hits(content, in_longer_numbers=True)
    assert hits(content.replace(text.encode(encoding), PHONE.encode(encoding)))


def test_a_short_integer_is_not_searched_as_bytes():
    assert hits(b" 4711 ") == []


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1000])
def test_a_value_is_found_once_wherever_windows_end(chunk_bytes):
    value = EMAIL.encode()
    content = b"-" * 501 + value + b"." * 300 + value

    found = hits(content, chunk_bytes=chunk_bytes)

    assert [(hit.start, hit.end) for hit in found] == [
        (501, 501 + len(value)),
        (801 + len(value), 801 + 2 * len(value)),
    ]


def test_no_more_than_the_given_bytes_are_read():
    content = b"-" * 100 + EMAIL.encode()
    search = ByteSearch(SoughtValues.of([PERSON], ()))

    assert list(search.find_in_file(io.BytesIO(content), 100)) == []


def test_the_beginning_that_a_bound_keeps_is_found():
    lower, upper = truncated_bounds(EMAIL)

    assert (lower, upper) == ("maria.lopez.garc", "maria.lopez.gard")
    for bound in (lower, upper):
        (hit,) = hits(b"\x02 " + bound.encode() + b"\x00")
        assert hit.sought.kind == "beginning of a value"


def test_a_bound_of_a_short_value_is_the_value():
    assert truncated_bounds("sixteen letters!") == []


def test_a_last_character_that_nothing_follows_is_left_as_it_is():
    text = "a" * 14 + "b" + "\U0010ffff" + "more"

    assert truncated_bounds(text)[1] == "a" * 14 + "c"


def test_a_value_is_not_told_a_second_time_for_its_beginning():
    (hit,) = hits(EMAIL.encode())

    assert hit.sought.kind == "personal value"


@given(st.binary(max_size=5), st.text(min_size=4, max_size=40), st.binary(max_size=5))
def test_the_middle_of_base64_does_not_depend_on_what_is_beside(before, text, after):
    content = text.encode()
    encoded = base64.b64encode(before + content + after)

    assert any(middle in encoded for middle in base64_middles(content))


@given(
    value=st.text(min_size=6, max_size=40),
    before=st.binary(max_size=60),
    after=st.binary(max_size=60),
    chunk_bytes=st.integers(1, 50),
    encoding=st.sampled_from(
        ["utf-8", "utf-16-le", "utf-16-be", "hex", "base64", "json", "url"]
    ),
)
def test_any_value_is_found_anywhere(value, before, after, chunk_bytes, encoding):
    value = value.strip()
    assume(is_distinctive(value) and not value.isdigit())
    writers = {
        "hex": lambda: value.encode().hex().encode(),
        "base64": lambda: base64.b64encode(value.encode()),
        "json": lambda: json.dumps(value).encode(),
        "url": lambda: quote(value).encode(),
    }
    written = writers.get(encoding, lambda: value.encode(encoding))()

    assert hits(before + written + after, search_for(value), chunk_bytes=chunk_bytes)


@given(value=st.text(min_size=6, max_size=20), content=st.binary(max_size=400))
def test_windows_change_nothing(value, content):
    search = search_for(value)

    whole = hits(content + value.encode() + content, search)

    assert hits(content + value.encode() + content, search, chunk_bytes=3) == whole
