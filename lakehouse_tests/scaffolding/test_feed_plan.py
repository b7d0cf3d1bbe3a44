"""What is guessed of sample files, and which files are rejected."""

import json
import unicodedata
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.scaffolding.column_readings import Reading, reading_of
from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, plan_feed
from lakehouse.scaffolding.key_columns import is_key_name
from lakehouse.scaffolding.sampled_column import profile_column
from lakehouse.scaffolding.samples import read_samples
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put

pytestmark = pytest.mark.unit


def planned(folder: Path, *texts: str, max_rows: int = 1000) -> FeedPlan:
    paths = [put(folder, f"file_{number}.csv", text) for number, text in enumerate(texts)]
    return plan_feed(read_samples(paths, max_rows=max_rows), "kind", "UTC", date(2026, 6, 1))


def types(plan: FeedPlan) -> dict[str, str]:
    return {column.name: column.type for column in plan.columns}


def typed(name: str, *texts: str | None) -> Reading:
    return reading_of(profile_column(name, "", pa.array(texts, pa.string())))


def test_orders_are_typed_keyed_and_partitioned_by_day(tmp_path):
    plan = planned(tmp_path, kinds.ORDERS)

    assert list(types(plan).values()) == [
        "bigint",
        "timestamp",
        "bigint",
        "decimal(10,2)",
        "boolean",
    ]
    assert (plan.key, plan.subject.name) == (("order_id",), "customer_id")
    assert (plan.days.name, plan.days.since, plan.days.with_rows) == (
        "ordered_day",
        date(2026, 3, 1),
        8,
    )


@pytest.mark.parametrize(
    ("name", "texts", "function", "note"),
    [
        ("preis", ["1,50", "1204,25"], "decimal_comma", "decimal commas, no points so far"),
        ("x", ["1.204,50"], "decimal_comma", "decimal commas, points between thousands"),
        ("day", ["20260131"], "iso_date", "dates such as 20261231"),
        ("x", ["1.2.2026", "31.12.2026"], "iso_date", "dates such as 31.12.2026"),
        ("customer_id", ["17.0", "18.0"], "whole_number", "whole numbers such as 17.0"),
        ("x", ["17.0", "18.0"], "", ""),
    ],
)
def test_notations_are_converted(name, texts, function, note):
    reading = typed(name, *texts)
    assert (reading.function, reading.note) == (function, note)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("code", ["+49", "49", "33"]),
        ("dial", ["+49", "+43"]),
        ("slot_id", ["1E5", "10E4", "20"]),
        ("x", ["12E3", "5"]),
        ("clause_no", ["2.1", "2.10"]),
        ("clause_no", ["2.1", "2.2"]),
        ("version", ["1.9", "2.0"]),
        ("x", ["1.10", "1.2", "2.0"]),
        ("pos_no", ["1,1", "1,10"]),
        ("x", ["007.1", "7.1"]),
        ("order_no", ["17", "17.0"]),
        ("order_no", ["-0", "0"]),
        ("sku", ["17", " 17", "18 "]),
        ("x", ["1,234.50", "1234.50"]),
        ("x", [".5", ".25"]),
        ("sold_on", ["2026-01-31", "31.01.2026"]),
        ("x", ["1,234"]),
        ("country", ["NO", "NO"]),
        ("country", ["NO", "NO "]),
        ("x", ["yes", "true"]),
        ("x", ["True", "true", "false"]),
        ("x", ["f", "f"]),
        ("sold_on", ["1/2/2026 8:05", "11/12/2026 10:05"]),
        ("sold_on", ["2026-02-30"]),
        ("at", ["2026-01-31T08:00:00.1234567Z"]),
        ("at", ["2026-01-31 24:00"]),
        ("x", ["1.5e300", "1e999"]),
        ("x", ["0.5e1", "0.12345678901234567891"]),
        ("x", ["1" * 39]),
        ("x", ["12 %"]),
        ("x", ["١٢"]),
        ("x", ["31-Jan-2026"]),
        ("x", ["1/31/26"]),
    ],
)
def test_what_a_type_would_change_stays_text(name, texts):
    assert typed(name, *texts).type == "string"


@pytest.mark.parametrize(
    ("name", "texts", "expected"),
    [
        ("order_no", ["17", "18"], "bigint"),
        ("order_no", [" 17", " 170"], "bigint"),
        ("store", ["17", None, "NA", " "], "int"),
        ("x", ["2.10", "2.25"], "decimal(10,2)"),
        ("x", ["2.1", "2.25", "3"], "decimal(10,2)"),
        ("x", ["2.0", "2.25"], "decimal(10,2)"),
        ("x", ["10", "10.50"], "decimal(10,2)"),
        ("x", ["1.5e-3", "2.5"], "double"),
        ("x", ["0.30000000000000004", "0.1"], "double"),
        ("x", ["0.1234567890123456789", "0.1234567890123456788"], "decimal(23,19)"),
        ("x", ["12345678901234567890"], "decimal(38,0)"),
        ("sold_on", ["1/2/2026 8:05", "11/22/2026 10:05"], "timestamp"),
        ("sold_at", ["2026-01-02T08:05:00.123456000Z"], "timestamp"),
        ("sold_at", ["2026-01-02T08:05Z", "2026-01-03T08:05Z"], "timestamp"),
        ("sold_at", ["2026-01-02 00:00:00"], "date"),
        ("paid", ["Yes", "No"], "boolean"),
        ("paid", ["false"], "boolean"),
        ("created_at", ["1773000000"], "bigint"),
        ("ean", ["4006381333931"], "bigint"),
    ],
)
def test_one_notation_is_typed_without_a_note(name, texts, expected):
    reading = typed(name, *texts)
    assert reading.type == expected
    assert "become equal" not in reading.note


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("amount", ["2.5", "2.50"]),
        ("Einzelpreis", ["2,5", "2,50"]),
        ("x", ["-5", "+5", "5"]),
        ("x", ["1.5e3", "1500.0"]),
        ("sold_on", ["1.2.2026", "01.02.2026"]),
        ("at", ["2026-01-31T08:00Z", "2026-01-31T09:00+01:00"]),
        ("at", ["2026-01-31 08:00", "2026-01-31 08:00:00"]),
    ],
)
def test_measures_and_times_can_lose_their_notation_with_a_note(name, texts):
    reading = typed(name, *texts)
    assert reading.type != "string"
    assert "notations that become equal" in reading.note


@pytest.mark.parametrize(
    "text",
    [
        "a,b\nx,950\nx,1.204\n",
        "a;b\nx;1.204\n",
        'a,b\nx,"1,204"\nx,4000\n',
        'a,b\nx,1.204\nx,"1,204"\n',
        "a,b\nx,4000\nx,1.204\n",
    ],
)
def test_a_number_that_can_be_over_a_thousand_stays_text(tmp_path, text):
    column = planned(tmp_path, text).columns[1]
    assert (column.type, "over a thousand" in column.reading.unclear) == ("string", True)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["2.50", "unknown", "4.00", "1.00"], "with text or in other forms"),
        (["NA", "-"], "empty in all rows"),
        *(([text, text], "in other forms") for text in ("$5", "1 204,50", "1,204.50", ".5")),
        (["2026-01-31", "31.01.2026"], "in several forms"),
        (["007", "7", "8"], "codes such as 007"),
        (["Ely", "3", "Bath"], ""),
    ],
)
def test_text_has_a_reason(texts, reason):
    reading = typed("x", *texts)
    assert (reading.type, reading.unclear == "") == ("string", reason == "")
    assert reason in reading.unclear


def test_names_of_columns_are_simplified(tmp_path):
    plan = planned(tmp_path, "week-1,1st Week,2024 votes,2023 votes,2013$,Größe\na,b,c,d,e,f\n")
    assert [column.name for column in plan.columns] == [
        *("week_1", "week_1st", "votes_2024", "votes_2023", "column_5", "grosse")
    ]


def test_columns_of_some_files_are_optional(tmp_path):
    plan = planned(tmp_path, "id,a\n1,x\n", "b,id\ny,2\n")
    assert [column.name for column in plan.columns if column.is_optional] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("order_id,line_no,n\n1,1,x\n1,2,x\n2,1,x\n2,2,y\n", ("order_id", "line_no")),
        # Namibia's code is a word for nothing in other columns.
        ("country_id,n\nNA,1\nZM,-\nZW,3\n", ("country_id",)),
        ("Bestellnummer,Art\n1,x\n2,x\n", ("Bestellnummer",)),
    ],
)
def test_named_and_unique_columns_are_the_key(tmp_path, text, key):
    assert planned(tmp_path, text).key == key


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("amount,day\n1.5,2026-01-01\n2.5,2026-01-01\n", id="an amount"),
        pytest.param("team,votes no\nx,0.15\ny,0.25\n", id="a share"),
        pytest.param("Number of Laps\n1\n2\n", id="a number of something"),
        pytest.param("order_no\n1\nNA\n", id="a gap"),
    ],
)
def test_unique_values_are_no_key_by_chance(tmp_path, text):
    assert planned(tmp_path, text).key == ()


def test_the_nearest_key_is_reported(tmp_path):
    rows = "".join(f"{n},{n % 4},{n % 2}\n" for n in (*range(20), 7, 7))
    plan = planned(tmp_path, f"order_id,line_no,n\n{rows}", "order_id,n\n,1\n")

    assert (plan.key, plan.key_guess.nearest) == ((), ("order_id",))
    assert plan.key_guess.nearest_repeated_rows == 3


def days_of(header: str, line: str) -> list[str]:
    return [
        f"{header}\n" + "".join(line.format(n=n, day=day, value=day * n) for n in range(12))
        for day in range(1, 5)
    ]


@pytest.mark.parametrize(
    ("header", "line", "key"),
    [
        ("day,station_id,value", "2026-05-0{day},s{n},{value}\n", ("station_id", "day")),
        ("country_code,year,value", "c{n},202{day},{value}\n", ("country_code", "year")),
        # The time of creation does not mean that a row replaces another one.
        ("sensor_id,created_at,v", "s{n},2026-05-0{day}T06:00,{value}\n", None),
        # Stations that report each day are a series.
        ("station_id,updated_at,v", "s{n},2026-05-0{day}T06:00,{value}\n", None),
    ],
)
def test_the_day_is_part_of_the_key_of_a_series(tmp_path, header, line, key):
    plan = planned(tmp_path, *days_of(header, line))

    assert plan.key == (key or tuple(header.split(",")[:2]))


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("station_id,day,value", "s{n},2{day}.05.2026,{value}\n"),
        ("reading_id,day,value", "{day}{n}.0,2026-05-0{day},{value}\n"),
    ],
    ids=["of days", "of numbers"],
)
def test_a_key_that_is_converted_is_merged_without_days(tmp_path, header, line):
    plan = planned(tmp_path, *days_of(header, line))

    assert plan.key
    assert plan.days is None


def test_a_series_without_days_has_no_key(tmp_path):
    plan = planned(tmp_path, *days_of("station_id,value", "s{n},{value}\n"))

    assert (plan.key, plan.key_guess.nearest) == ((), ("station_id",))


@pytest.mark.parametrize("day", ["2026-05-01", "01.05.2026"])
def test_a_day_with_two_values_in_two_files_is_no_part_of_a_key(tmp_path, day):
    one, *_ = days_of("day,station_id,value", "2026-05-0{day},s{n},{value}\n")
    other = one.replace("s11,11", "s11,12").replace("2026-05-01", day)
    assert planned(tmp_path, one, other).key == ()


def test_changed_rows_are_versions_of_a_key(tmp_path):
    header = "customer_no,city,updated_at\n"
    first = "".join(f"{n},Ely,2026-05-01T06:00\n" for n in range(30))
    later = "".join(f"{n},Rye,2026-05-02T06:00\n" for n in range(5))
    plan = planned(tmp_path, header + first, header + later)

    assert (plan.key, plan.version.name) == (("customer_no",), "updated_at")
    assert "5 of 35 rows are replaced by one with other values" in silver_notes(plan)[0]


def test_later_days_are_no_partitions(tmp_path):
    assert planned(tmp_path, "due,n\n" + "2031-01-01,1\n" * 9).days is None


def test_an_offset_can_move_a_row_to_the_day_before(tmp_path):
    days = planned(tmp_path, "at,n\n" + "2026-05-01T00:30:00+02:00,1\n" * 9).days
    assert days.since == date(2026, 4, 1)


@pytest.mark.parametrize(
    ("header", "personal", "subject"),
    [
        ("Kunden Nr,Name,Geburtsdatum,Straße,Ort", "Name Geburtsdatum Straße", "Kunden Nr"),
        ("Kundennummer,Kundenname,Lieferadresse", "Kundenname Lieferadresse", "Kundennummer"),
        ("Kunde,Betrag", "", "Kunde"),
        ("kdnr,Betrag", "", "kdnr"),
        ("customerid,Customer,total", "Customer", "customerid"),
        ("numéro client,Prénom,Nom,Ville", "Prénom Nom", "numéro client"),
        ("cliente_id,apellidos,dirección,ciudad", "apellidos dirección", "cliente_id"),
        ("klantnr,voornaam,straat,plaats", "voornaam straat", "klantnr"),
        ("DNI,Str.,Geb.", "DNI Str. Geb.", None),
        ("liczba dni,geb fee", "", None),
        ("product_id,name,price", "", None),
        ("filename,paid,grid", "", None),
        ("driver_id,team", "", "driver_id"),
    ],
)
def test_people_are_recognized_by_names_of_columns(tmp_path, header, personal, subject):
    names = header.split(",")
    rows = "".join(",".join(f"{name[:3]}w{n}" for name in names) + "\n" for n in range(5))
    plan = planned(tmp_path, f"{header}\n{rows}")

    assert " ".join(column.delivered for column in plan.personal_columns) == personal
    assert (plan.subject and plan.subject.delivered) == subject


@pytest.mark.parametrize(
    ("value", "is_personal"),
    [
        ("ada@mail.example", True),
        ("ada@mail", False),
        ("+44 20 7946 0123", True),
        ("(030) 7946-0123", True),
        ("0171/5551234", True),
        ("0 (532) 123 45 67", True),
        ("0-6 6-3 6-2", False),
        ("00/00/0000", False),
        ("01/02/2025", False),
    ],
)
def test_people_are_recognized_by_values(tmp_path, value, is_personal):
    assert bool(planned(tmp_path, f"a,b\nx,{value}\n").personal_columns) == is_personal


def test_names_of_unknown_owners_are_reported(tmp_path):
    rows = "".join(f"{n},Ada Lovelace,Ely\n" for n in range(9))
    (note,) = bronze_notes(planned(tmp_path, f"match_no,winner_name,place\n{rows}"))
    assert note.startswith("winner_name has values like names of people")


@pytest.mark.parametrize(
    ("name", "is_key"),
    [
        *((name, True) for name in ("order_id", "InvoiceNo", "codigo_cliente", "id_2")),
        *((name, False) for name in ("third_no_advance", "number_of_laps", "paid", "%")),
    ],
)
def test_keys_are_recognized_by_names(name, is_key):
    assert is_key_name(name) == is_key


# Files


def test_files_are_read_up_to_a_number_of_rows(tmp_path):
    samples = planned(tmp_path, *[kinds.ORDERS] * 3, max_rows=50).samples
    assert samples.texts.num_rows == 50


def test_a_value_can_be_the_word_column(tmp_path):
    assert planned(tmp_path, "name,kind\nid,column\norders,table\n").rows == 2


def test_compressed_files_with_names_in_upper_case_are_read(tmp_path):
    samples = read_samples([put(tmp_path, "ORDERS.CSV.gz", kinds.ORDERS)])
    assert samples.texts.num_rows == 40


@pytest.mark.parametrize("kind", kinds.REFUSED)
def test_a_rejected_file_is_named_with_the_reason_and_no_value(tmp_path, kind):
    content, reason = kinds.REFUSED[kind]
    path = put(tmp_path, f"{kind}.csv", content)

    with pytest.raises(LakehouseError) as error:
        read_samples([path])
    assert reason in str(error.value)
    assert f"{kind}.csv" in str(error.value)
    assert "put it back" not in str(error.value)
    assert not any(value in str(error.value) for value in ("hunter2", "ada@", "Köln"))


def test_the_number_of_an_invalid_row_is_reported(tmp_path):
    path = put(tmp_path, "a.csv", "id,secret\n1,x\n2,y,hunter2\n")
    with pytest.raises(LakehouseError, match="found 3 fields in row 2; expected 2"):
        read_samples([path])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["place,day\n", "Place,day\n"], "declares Place, place more than once"),
        ([kinds.ORDERS, kinds.ORDERS.replace(",", "\t")], "one field with tabs in it"),
        (["a,b\n1,2\n", "c,d\n1,2\n"], "file_0.csv, file_1.csv: no column is in all files"),
    ],
)
def test_files_that_do_not_fit_one_feed_are_named(tmp_path, texts, message):
    with pytest.raises(LakehouseError) as error:
        planned(tmp_path, *texts)
    assert message in str(error.value)


def test_a_file_in_another_format_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="in no format"):
        read_samples([put(tmp_path, "a.xlsx", b"PK")])


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_has_types_of_nested_values_and_numbers(tmp_path, name):
    first = {"id": 1, "no": "1", "paid": True, "mixed": 1, "item": {"sku": "a"}, "ids": [1]}
    second = {"id": 2, "no": "2", "paid": False, "mixed": "x", "item": {"n": 1.5}, "more": [[]]}
    lines = [json.dumps(record) for record in (first, second)]
    text = f"[{','.join(lines)}]" if name == "a.json" else "\n".join(lines)
    plan = plan_feed(read_samples([put(tmp_path, name, text)]), "kind", "UTC", date(2026, 6, 1))

    assert types(plan) == {
        "id": "bigint",
        "no": "string",
        "paid": "boolean",
        "mixed": "string",
        "item": "struct<sku:string,n:double>",
        "ids": "array<bigint>",
        "more": "array<array<string>>",
    }
    nested = {"item", "ids", "more"}
    assert {c.name for c in plan.columns if c.bronze_type != "string"} == nested


def test_unicode_normal_forms_of_a_name_are_one_column(tmp_path):
    forms = [unicodedata.normalize(form, "id,Größe\n1,10\n2,11\n") for form in ("NFC", "NFD")]
    columns = planned(tmp_path, *forms).columns
    assert [column.delivered for column in columns] == ["id", "Gr\u00f6\u00dfe"]
