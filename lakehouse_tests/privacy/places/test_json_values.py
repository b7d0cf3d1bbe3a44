"""JSON without a person stays JSON of the same types, with the same keys in the same order."""

import json
import zlib
from base64 import b64decode, b64encode

import pytest

from lakehouse.privacy.places.contents import scrub_text
from lakehouse_tests.privacy.places.a_person import EMAIL, NEIGHBOUR, PASSPORT, finder

pytestmark = pytest.mark.unit


def scrubbed(structure, *shared):
    """Return what is left of a piece of JSON, and the number of values that went."""
    result = scrub_text(finder(*shared), json.dumps(structure).encode())
    return json.loads(result.content), result.erased


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"customer_id": 7}, {"customer_id": 0}),
        ({"customer_id": "007"}, {"customer_id": "[erased]"}),
        ({"customer_id": 7.0}, {"customer_id": 0}),
        ({"customer_id": [7, 8]}, {"customer_id": [0, 8]}),
        ({"a": [f"to {EMAIL}!"]}, {"a": ["to [erased]!"]}),
        ({EMAIL: 1}, {"[erased]": 1}),
        ({"a": int(PASSPORT)}, {"a": 0}),
        ({"a": json.dumps({"customer_id": 7})}, {"a": '{"customer_id": 0}'}),
    ],
)
def test_a_value_goes_and_its_type_stays(before, after):
    assert scrubbed(before) == (after, 1)


@pytest.mark.parametrize(
    "structure",
    [
        {"rows": 7},
        {"customer_id": 77},
        {"customer_id": None},
        {"customer_id": True},
        {"email": NEIGHBOUR},
        {"a": 1.5, "b": {"c": [False, "x"]}},
    ],
)
def test_what_is_of_others_stays(structure):
    assert scrubbed(structure) == (structure, 0)


def test_metadata_is_known_by_its_name():
    metadata = {
        "customer_id": {"__class__": "IntMetadataEntryData", "value": 7},
        "rows": {"__class__": "IntMetadataEntryData", "value": 7},
    }

    after, erased = scrubbed(metadata)

    assert (after["customer_id"]["value"], after["rows"]["value"], erased) == (0, 7, 1)


def test_metadata_of_older_events_is_known_by_its_label():
    entry = {
        "__class__": "EventMetadataEntry",
        "label": "customer_id",
        "entry_data": {"__class__": "TextMetadataEntryData", "text": "7"},
    }

    assert scrubbed(entry)[0]["entry_data"]["text"] == "[erased]"


def test_of_a_row_in_a_sample_all_goes():
    row = {"customer_id": "7", "amount": 9.5, "region": "Penang", "paid": True, "note": None}
    record = {"__class__": "TableRecord", "data": row}

    assert scrubbed(record)[0]["data"] == {
        "customer_id": "[erased]",
        "amount": 0,
        "region": "[erased]",
        "paid": True,
        "note": None,
    }


def test_a_row_of_somebody_else_stays():
    record = {"__class__": "TableRecord", "data": {"customer_id": "8", "region": "Penang"}}

    assert scrubbed(record) == (record, 0)


def test_a_row_in_which_only_a_shared_value_stands_stays():
    record = {"__class__": "TableRecord", "data": {"customer_id": "8", "email": EMAIL}}

    assert scrubbed(record, EMAIL) == (record, 0)


def test_names_by_which_dagster_finds_things_are_left_and_counted():
    event = {"__class__": "DagsterEvent", "step_key": EMAIL, "message": EMAIL}

    result = scrub_text(finder(), json.dumps(event).encode())

    after = json.loads(result.content)
    assert (after["step_key"], after["message"]) == (EMAIL, "[erased]")
    assert (result.erased, result.kept_names) == (1, 1)


def test_two_keys_that_would_become_one_stay_two():
    assert scrubbed({EMAIL: 1, PASSPORT: 2})[0] == {"[erased]": 1, "[erased]*": 2}


def test_fields_of_dagsters_own_objects_keep_their_names():
    event = {"__class__": "A", EMAIL: EMAIL}

    assert scrubbed(event)[0] == {"__class__": "A", EMAIL: "[erased]"}


def test_a_packed_cursor_is_packed_again():
    inner = json.dumps({"customer_id": 7, "to": EMAIL}).encode()
    cursor = "0" + b64encode(zlib.compress(inner)).decode()

    after, erased = scrubbed({"cursor": cursor})

    unpacked = zlib.decompress(b64decode(after["cursor"].removeprefix("0")))
    assert json.loads(unpacked) == {"customer_id": 0, "to": "[erased]"}
    assert erased == 2


def test_json_that_is_nested_too_deeply_is_searched_as_text():
    text = "[" * 5000 + json.dumps(EMAIL) + "]" * 5000

    result = scrub_text(finder(), text.encode())

    assert result.content == ("[" * 5000 + '"[erased]"' + "]" * 5000).encode()


def test_half_a_character_stays_as_it_is():
    text = '{"a": "\\ud83d", "b": "é", "email": "' + EMAIL + '"}'

    after = json.loads(scrub_text(finder(), text.encode()).content)

    assert after == {"a": "\ud83d", "b": "é", "email": "[erased]"}


def test_json_in_which_nothing_stands_is_not_written_anew():
    text = b'{ "customer_id" :  8 }'

    assert scrub_text(finder(), text).content is text
