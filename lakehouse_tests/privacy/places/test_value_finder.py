"""Values are found in every form in which they are written, and what only looks like one is not."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus
from uuid import UUID

import pytest

from lakehouse.privacy.places.contents import scrub_text
from lakehouse.privacy.places.overwriting import overwritten, patches
from lakehouse.privacy.places.value_finder import ValueFinder
from lakehouse.privacy.places.wanted_values import WantedValues
from lakehouse.tables.masking import mask
from lakehouse.tables.person import Person
from lakehouse_tests.privacy.places.a_person import (
    EMAIL,
    NEIGHBOUR,
    PASSPORT,
    PERSON,
    finder,
)

pytestmark = pytest.mark.unit

FORMS = {
    "as it is": EMAIL.encode(),
    "latin-1": EMAIL.encode("latin-1"),
    "UTF-16, little end first": EMAIL.encode("utf-16-le"),
    "UTF-16, big end first": EMAIL.encode("utf-16-be"),
    "JSON": json.dumps(EMAIL).encode(),
    "JSON within JSON": json.dumps(json.dumps({"a": EMAIL})).encode(),
    "JSON of UTF-8 within JSON": json.dumps(
        json.dumps(EMAIL, ensure_ascii=False), ensure_ascii=False
    ).encode(),
    "an address": quote(EMAIL).encode(),
    "an address in small letters": quote(EMAIL, safe="").lower().encode(),
    "a form": quote_plus(EMAIL).encode(),
    "Python": ascii(EMAIL).encode(),
    "SQL": EMAIL.replace("'", "''").encode(),
    "capital letters": EMAIL.upper().encode(),
    "letters of either case": b"ZOE\xcc\x88.O'Neil@Example.com",
    "JSON within JSON within JSON": json.dumps(json.dumps(json.dumps(EMAIL))).encode(),
    "hex": EMAIL.encode().hex().encode(),
    "capital hex": EMAIL.encode().hex().upper().encode(),
    "letters with marks of their own": "zoe\u0308.o'neil@example.com".encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_found_in_each_of_its_forms(form):
    content = b"<" + FORMS[form] + b">"

    result = overwritten(finder(), content)

    assert result.erased == 1
    assert b"neil" not in result.content.lower()
    assert len(result.content) <= len(content)


@pytest.mark.parametrize("form", FORMS)
def test_in_a_file_it_is_overwritten_by_as_many_bytes(form):
    content = b"\n" + FORMS[form] + b"\n"

    found, _ = patches(finder(), content)

    assert len(found) == 1
    assert len(found[0].content) == found[0].end - found[0].start


@pytest.mark.parametrize("between", [b"", b",", b"; "])
@pytest.mark.parametrize("lead", [b"", b"a", b"ab"])
def test_two_values_in_base64_beside_each_other_both_go(between, lead):
    value = b64encode(lead + EMAIL.encode()).rstrip(b"=")
    content = b"<" + value + between + value + b">"

    result = overwritten(finder(), content)
    found, _ = patches(finder(), content)

    patched = bytearray(content)
    for patch in found:
        patched[patch.start : patch.end] = patch.content
    assert len(result.content) == len(content)
    assert finder().find(result.content).spans == finder().find(bytes(patched)).spans == ()


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc"])
@pytest.mark.parametrize("after", [b"", b"z", b"yz"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_base64_is_decoded_to_what_stood_around_the_value(before, after, encode):
    result = overwritten(finder(), b"data:" + encode(before + EMAIL.encode() + after) + b";")

    encoded = result.content.removeprefix(b"data:").removesuffix(b";")
    assert b64decode(encoded, b"-_" if encode is urlsafe_b64encode else b"+/") == (
        before + b"*" * len(EMAIL.encode()) + after
    )


@pytest.mark.parametrize(
    "text",
    [
        f"passport {PASSPORT}.",
        f'"{PASSPORT}"',
        f"{PASSPORT}.0",
        f"no{PASSPORT}",
        "4,711,081,512",
        f"10:41:07 {PASSPORT}\n",
    ],
)
def test_a_number_is_found_where_it_is_a_whole(text):
    assert overwritten(finder(), text.encode()).erased == 1
    assert overwritten(finder(), text.encode("utf-16-le")).erased == 1 or "," in text


@pytest.mark.parametrize(
    "text",
    [
        f"{PASSPORT}3",
        f"1{PASSPORT}",
        f"0{PASSPORT}.25",
    ],
)
def test_a_part_of_a_number_is_none(text):
    assert overwritten(finder(), text.encode()).erased == 0
    assert overwritten(finder(), text.encode("utf-16-le")).erased == 0


@pytest.mark.parametrize(
    "text",
    [
        "customer_id=7",
        "Row: name=x, customer_id=007, region=y",
        "WHERE customer_id = '7'",
        '{"customer_id": 7}',
        '{"customer_id":"007"}',
        '{\\"customer_id\\": \\"7\\"}',
        "customer_id: 7",
    ],
)
def test_a_short_id_is_found_behind_the_name_of_its_column(text):
    assert overwritten(finder(), text.encode()).erased == 1


@pytest.mark.parametrize(
    "text", ["7", "customer_id=77", "other_customer_id=7", "customer_id=8, rows=7"]
)
def test_a_short_id_is_left_elsewhere(text):
    assert overwritten(finder(), text.encode()).content == text.encode()


@pytest.mark.parametrize("mark", ["…", "...", '"', "\n", ""])
@pytest.mark.parametrize("length", [16, 20])
def test_the_beginning_of_a_value_that_was_cut_is_found(mark, length):
    person = Person(
        "customer_id", frozenset(), {"address": frozenset({"12 Long Street, Springfield"})}
    )
    search = ValueFinder(WantedValues.of([person]))
    text = f"Row: address={'12 Long Street, Springfield'[:length]}{mark}"

    assert overwritten(search, text.encode()).content == f"Row: address=[erased]{mark}".encode()


def test_what_begins_alike_and_goes_on_is_of_somebody_else():
    person = Person(
        "customer_id", frozenset(), {"address": frozenset({"12 Long Street, Springfield"})}
    )
    search = ValueFinder(WantedValues.of([person]))
    text = b"12 Long Street, Spring Hill and 12 Long Street, Springfield"

    assert overwritten(search, text).content == b"12 Long Street, Spring Hill and [erased]"


@pytest.mark.parametrize("spelling", [str, str.upper, lambda text: text.replace("-", "")])
def test_an_identifier_is_found_however_it_is_written(spelling):
    identifier = "0f8fad5b-d9cb-469f-a165-70867728950e"
    person = Person("customer_id", frozenset({identifier}))
    search = ValueFinder(WantedValues.of([person]))

    assert overwritten(search, spelling(identifier).encode()).content == b"[erased]"
    assert overwritten(search, UUID(identifier).bytes).content == b"*" * 16


def test_what_others_have_too_is_left_and_counted():
    result = overwritten(finder(EMAIL), f"{EMAIL} {PASSPORT}".encode())

    assert result.content == f"{EMAIL} [erased]".encode()
    assert (result.erased, result.shared) == (1, 1)


def test_a_longer_value_of_others_explains_what_stands_within_it():
    person = Person("customer_id", frozenset(), {"email": frozenset({NEIGHBOUR})})
    search = ValueFinder(WantedValues.of([person], ["reuben@example.com"]))

    result = overwritten(search, b"reuben@example.com ben@example.com")

    assert result.content == b"reuben@example.com [erased]"
    assert (result.erased, result.shared) == (1, 1)


def test_the_mask_of_a_value_is_found_too():
    search = ValueFinder(WantedValues.of([PERSON], masking_keys=[b"key"]))

    result = overwritten(search, f"customer={mask(b'key', '7')}".encode())

    assert result.content == b"customer=[erased]"


def test_the_mask_of_a_value_that_others_have_is_left():
    search = ValueFinder(WantedValues.of([PERSON], [EMAIL], [b"key"]))
    masked = f"{mask(b'key', EMAIL)}".encode()

    assert overwritten(search, masked).content == masked


@pytest.mark.parametrize("value", ["", " ", "erased", "[erased]"])
def test_what_stands_for_nobody_is_not_searched(value):
    person = Person("customer_id", frozenset({value}), {"email": frozenset({value})})
    text = f'{{"customer_id": "{value}", "email": "{value}", "a": "[erased]"}}'

    assert scrub_text(ValueFinder(WantedValues.of([person])), text.encode()).erased == 0


@pytest.mark.long
@pytest.mark.parametrize("value", ["²" * 9, "9" * 5000, "a\x00b\ud800cdef"])
def test_odd_values_are_searched_too(value):
    person = Person("customer_id", frozenset(), {"email": frozenset({value})})
    text = b"<" + value.encode("utf-8", "surrogatepass") + b">"

    assert overwritten(ValueFinder(WantedValues.of([person])), text).content == b"<[erased]>"


@pytest.mark.long
def test_a_thousand_people_are_searched_at_once():
    people = [
        Person(
            "customer_id", frozenset({str(number)}), {"email": frozenset({f"p{number}@x.org"})}
        )
        for number in range(1000)
    ]
    text = "".join(f"customer_id={number} p{number}@x.org\n" for number in range(1000))

    result = overwritten(ValueFinder(WantedValues.of(people)), text.encode())

    assert result.content == b"customer_id=[erased] [erased]\n" * 1000
