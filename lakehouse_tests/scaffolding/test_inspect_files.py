"""Looking at files: what is found in each kind, and what is said of those that cannot be read."""

import unicodedata
from datetime import date

import pytest

from lakehouse.errors import DeclarationError, LakehouseError, UsageError
from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.column_reading import Reading, reading_of
from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes
from lakehouse.scaffolding.feed_plan import FeedPlan, plan_feed
from lakehouse.scaffolding.inspect_files import check_files, inspect_files
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.tables.feed import Feed
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put

pytestmark = pytest.mark.unit


def planned(folder, *texts: str) -> FeedPlan:
    """What is planned for files with these texts."""
    paths = [put(folder, f"file_{number}.csv", text) for number, text in enumerate(texts)]
    return plan_feed(inspect_files(paths), "kind", "UTC", date(2026, 6, 1))


def types(plan: FeedPlan) -> dict[str, str]:
    """The types of a plan's columns."""
    return {column.name: column.type for column in plan.columns}


def test_orders_are_typed_keyed_and_parted_by_day(tmp_path):
    plan = planned(tmp_path, kinds.ORDERS)

    assert types(plan) == {
        "order_id": "bigint",
        "ordered_at": "timestamp",
        "customer_id": "bigint",
        "amount": "decimal(10,2)",
        "paid": "boolean",
    }
    assert plan.key == ("order_id",)
    assert plan.subject.name == "customer_id"
    assert (plan.days.name, plan.days.since, plan.days.with_rows) == (
        "ordered_day",
        date(2026, 3, 1),
        8,
    )
    assert plan.days.without_rows == 0


def test_a_mark_and_line_ends_of_windows_are_no_part_of_names(tmp_path):
    assert types(planned(tmp_path, kinds.BOM)) == {"id": "bigint", "name": "string"}


def test_decimal_commas_are_numbers(tmp_path):
    plan = planned(tmp_path, kinds.DECIMAL_COMMAS)

    assert types(plan)["preis"] == types(plan)["gewicht"] == "decimal(10,2)"
    # A point would stand between thousands, also where none was seen yet.
    assert [
        (c.reading.numbers.mark, c.reading.numbers.is_grouped, c.reading.note)
        for c in plan.columns[1:]
    ] == [
        (",", True, "decimal commas, no points so far"),
        (",", True, "decimal commas, points between thousands"),
    ]


def test_digits_in_groups_are_numbers(tmp_path):
    (_, amount) = planned(tmp_path, kinds.GROUPED_POINTS).columns
    assert (amount.type, amount.reading.note) == ("decimal(10,2)", "commas between thousands")


def test_two_files_may_write_dates_differently(tmp_path):
    plan = planned(tmp_path, kinds.DAY_FIRST, kinds.ISO_DAYS)

    (posted,) = (column for column in plan.columns if column.name == "posted_on")
    assert (posted.type, posted.reading.dates.forms) == ("date", ("Y-M-D", "D.M.Y"))


def test_what_is_empty_is_said_and_stays_text(tmp_path):
    plan = planned(tmp_path, kinds.EMPTY_COLUMNS)

    assert types(plan)["remark"] == types(plan)["discount"] == "string"
    assert [column.name for column in plan.unclear_columns] == ["remark", "discount"]


def test_people_are_seen_by_names_and_by_values(tmp_path):
    plan = planned(tmp_path, kinds.PEOPLE)

    assert [column.delivered for column in plan.personal_columns] == [
        "First Name",
        "e-mail",
        "Phone",
    ]
    assert plan.subject.delivered == "Customer No"
    assert [column.name for column in plan.columns] == [
        "customer_no",
        "first_name",
        "e_mail",
        "Phone",
        "grosse",
        "Joined",
    ]
    assert plan.days is None


def test_what_can_be_read_in_two_ways_stays_text_and_is_said(tmp_path):
    plan = planned(tmp_path, kinds.AMBIGUOUS)

    assert types(plan) == {"entry": "string", "due": "string", "weight": "string"}
    assert [column.name for column in plan.unclear_columns] == ["due", "weight"]
    assert plan.days is None


def test_dates_that_no_cast_reads_are_said(tmp_path):
    (_, day) = planned(tmp_path, kinds.UNREAD_DATES).columns
    assert day.type == "string"
    assert "names of months" in day.reading.unclear


def test_digits_that_begin_with_zero_are_no_numbers_and_eight_may_be_a_day(tmp_path):
    plan = planned(tmp_path, kinds.CODES)
    assert types(plan) == {"store": "int", "postcode": "string", "open_date": "date"}


def test_commas_and_line_ends_in_quotes_are_text(tmp_path):
    plan = planned(tmp_path, kinds.QUOTED)
    assert (plan.rows, plan.key) == (3, ("id",))


def test_what_only_some_files_have_is_optional(tmp_path):
    plan = planned(tmp_path, "id,a\n1,x\n", "b,id\ny,2\n")
    assert {column.name: column.is_optional for column in plan.columns} == {
        "id": False,
        "a": True,
        "b": True,
    }


def test_a_key_that_comes_again_in_other_files_has_versions(tmp_path):
    rows = "".join(f"{n},x{n}\n" for n in range(20))
    plan = planned(tmp_path, f"id,name\n{rows}", f"id,name\n{rows}")
    assert (plan.key, plan.chosen_key.is_repeated) == (("id",), True)


def days_of(header: str, line: str, days: int = 4) -> list[str]:
    """Files of some days, each with the same twelve stations and values of its own."""
    numbers = range(12)
    return [
        f"{header}\n"
        + "".join(line.format(n=n, day=day, value=day * n) + "\n" for n in numbers)
        for day in range(1, days + 1)
    ]


@pytest.mark.parametrize(
    ("header", "line", "key"),
    [
        ("day,station_id,value", "2026-05-0{day},s{n},{value}", ("station_id", "day")),
        ("station_id,at,value", "s{n},2026-05-0{day} 17:00,{value}", ("station_id", "at")),
        ("country_code,year,value", "c{n},202{day},{value}", ("country_code", "year")),
        # It says when a value was made, and not that it took the place of another.
        (
            "sensor_id,created_at,v",
            "s{n},2026-05-0{day}T06:00,{value}",
            ("sensor_id", "created_at"),
        ),
        # Of twelve bicycle stations each, every day.
        (
            "station_id,updated_at,v",
            "s{n},2026-05-0{day}T06:00,{value}",
            ("station_id", "updated_at"),
        ),
    ],
)
def test_what_comes_in_each_file_of_a_series_is_a_key_with_its_day(tmp_path, header, line, key):
    plan = planned(tmp_path, *days_of(header, line))

    assert plan.key == key
    assert plan.chosen_key.repeated.replaced_rows == 36
    (note, *_) = silver_notes(plan)
    assert "by it alone 36 of 48 rows would be replaced by one with other values" in note
    assert f"Together with {key[-1]} it is the key, and no row is lost." in note


def test_each_line_of_a_series_that_says_no_day_is_a_row(tmp_path):
    plan = planned(tmp_path, *days_of("station_id,value", "s{n},{value}"))

    assert plan.key == ()
    (note, *_) = silver_notes(plan)
    assert "each delivered line is a row" in note
    assert "by it alone 33 of 48 rows would be replaced by one with other values" in note


def test_a_day_that_two_files_have_with_other_values_is_no_part_of_a_key(tmp_path):
    one, *_ = days_of("day,station_id,value", "2026-05-0{day},s{n},{value}")
    other = one.replace("s11,11", "s11,12")
    assert planned(tmp_path, one, other).key == ()


def test_what_only_the_last_file_has_with_other_values_is_seen(tmp_path):
    one, *_ = days_of("station_id,value", "s{n},{value}")
    plan = planned(tmp_path, one, one, one, one.replace("s11,11", "s11,12"))
    assert (plan.key, plan.chosen_key.repeated.replaced_rows) == ((), 1)


def test_changes_say_by_their_moment_which_counts_and_how_many_rows_give_way(tmp_path):
    header = "customer_no,city,updated_at\n"
    first = "".join(f"{n},Ely,2026-05-01T06:00\n" for n in range(30))
    later = "".join(f"{n},Rye,2026-05-02T06:00\n" for n in range(5))
    plan = planned(tmp_path, header + first, header + later)

    assert (plan.key, plan.chosen_key.is_repeated) == (("customer_no",), True)
    assert "5 of 35 rows give way to one with other values" in silver_notes(plan)[0]


def test_of_one_file_of_a_day_it_is_said_that_others_may_have_its_keys(tmp_path):
    first, *_ = days_of("day,station_id,value", "2026-05-0{day},s{n},{value}")
    plan = planned(tmp_path, first)

    assert plan.key == ("station_id",)
    assert "begin the feed from files of both" in silver_notes(plan)[0]


def test_two_columns_may_be_the_key(tmp_path):
    rows = "".join(f"{n // 3},{n % 3},{n % 2}\n" for n in range(30))
    assert planned(tmp_path, f"order_id,line_no,n\n{rows}").key == ("order_id", "line_no")


def test_an_amount_that_is_unique_by_chance_is_no_key(tmp_path):
    assert planned(tmp_path, "amount,day\n1.5,2026-01-01\n2.5,2026-01-01\n").key == ()


def test_days_without_rows_are_counted(tmp_path):
    rows = "".join(f"{day},{n}\n" for day in ("2026-01-01", "2026-01-09") for n in range(5))
    days = planned(tmp_path, f"day,n\n{rows}").days
    assert (days.with_rows, days.without_rows) == (2, 7)


def test_days_to_come_are_none_to_part_by(tmp_path):
    rows = "".join(f"2031-01-01,{n}\n" for n in range(9))
    assert planned(tmp_path, f"due,n\n{rows}").days is None


def test_compressed_files_are_read(tmp_path):
    path = put(tmp_path, "orders.csv.gz", kinds.ORDERS)
    assert inspect_files([path]).rows == 40


def test_no_more_rows_are_looked_at_than_asked_for(tmp_path):
    paths = [put(tmp_path, name, kinds.ORDERS) for name in ("a.csv", "b.csv", "c.csv")]
    found = inspect_files(paths, most_rows=50)
    assert ([file.rows for file in found.files], found.is_whole) == ([40, 10, 0], False)


@pytest.mark.parametrize("kind", kinds.REFUSED)
def test_a_file_that_a_feed_would_refuse_is_named_with_the_reason_and_no_value(tmp_path, kind):
    content, reason = kinds.REFUSED[kind]
    path = put(tmp_path, f"{kind}.csv", content)

    with pytest.raises(LakehouseError) as error:
        inspect_files([path])
    assert reason in str(error.value)
    assert f"{kind}.csv" in str(error.value)
    assert "put it back" not in str(error.value)
    assert not any(value in str(error.value) for value in ("hunter2", "ada@", "Köln"))


@pytest.mark.parametrize("header", ["Place,day", "place, day", "DAY,place"])
def test_files_that_spell_a_column_differently_are_named(tmp_path, header):
    """A feed of both spellings would keep every command from loading."""
    one = put(tmp_path, "one.csv", "place,day\nx,2026-01-01\n")
    other = put(tmp_path, "other.csv", f"{header}\nx,2026-01-02\n")

    with pytest.raises(LakehouseError, match="expected one spelling") as error:
        inspect_files([one, other])
    assert "other.csv has a column" in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.xlsx", "in no format"), ("gone.csv", "is not there"), ("", "a folder")],
)
def test_what_is_no_file_of_a_feed_is_wrong_usage(tmp_path, name, message):
    put(tmp_path, "a.xlsx", b"PK")
    with pytest.raises(UsageError, match=message):
        inspect_files([tmp_path / name])


def test_semicolons_a_mark_decimal_commas_and_two_forms_of_dates_are_read(tmp_path):
    plan = planned(tmp_path, kinds.SEMICOLONS)

    assert plan.delimiter == ";"
    assert types(plan) == {
        "kunden_nr": "bigint",
        "Datum": "date",
        "Betrag": "decimal(10,2)",
        "ort_land": "string",
    }
    (_, day, amount, _) = plan.columns
    assert day.reading.dates.forms == ("Y-M-D", "D.M.Y")
    assert amount.reading.numbers.mark == ","


def test_files_with_different_delimiters_are_named(tmp_path):
    with pytest.raises(
        LakehouseError, match=r"file_1.csv is separated by tabs, and file_0.csv by"
    ):
        planned(tmp_path, kinds.ORDERS, kinds.TABS)


def test_of_files_with_different_delimiters_the_odd_one_is_named(tmp_path):
    with pytest.raises(LakehouseError, match=r"^file_0.csv is separated by tabs, and file_1"):
        planned(tmp_path, kinds.TABS, kinds.ORDERS, kinds.ORDERS)


def test_one_letter_in_all_rows_may_be_a_code(tmp_path):
    path = put(tmp_path, "a.csv", b"id,sex,paid\n1,f,t\n2,f,f\n3,F,t\n")
    found = inspect_files([path])

    sex, paid = (reading_of(found.columns[name]) for name in ("sex", "paid"))
    assert (sex.type, paid.type) == ("string", "boolean")
    assert "a code or a boolean" in sex.unclear


def test_a_few_values_that_keep_a_column_from_being_a_number_are_said(tmp_path):
    path = put(
        tmp_path,
        "a.csv",
        b"id,amount,place\n1,2.50,Ely\n2,unknown,3\n3,4.00,Bath\n4,1.00,Rye\n",
    )
    found = inspect_files([path])

    amount, place = (reading_of(found.columns[name]) for name in ("amount", "place"))
    assert (amount.type, place.type) == ("string", "string")
    assert "text in 1 of 4 rows" in amount.unclear
    assert place.unclear == ""


GROUPED = "artikel_nr;preis;menge;stand\n" + "".join(
    f"A{n};1.{n:03},50;1.{n:03};0{1 + n % 9}.02.2026\n" for n in range(100, 130)
)


def test_a_few_rows_that_keep_days_from_being_read_are_said(tmp_path):
    rows = "".join(f"{n},199{n}0203\n" for n in range(9))
    plan = planned(tmp_path, f"member_no,dob\n{rows}9,19890000\n")

    assert types(plan)["dob"] == "string"
    (column,) = plan.unclear_columns
    assert column.reading.unclear == "dates such as 20261231, and none in 1 of 10 rows"


def test_names_of_nobody_knows_whom_are_said(tmp_path):
    rows = "".join(f"{n},Ada Lovelace,Ely\n" for n in range(9))
    plan = planned(tmp_path, f"match_no,winner_name,place\n{rows}")

    assert plan.personal_columns == ()
    (note,) = bronze_notes(plan)
    assert note.startswith("winner_name has values like names of people; say personal=True")


def test_columns_of_one_file_are_read_as_one_writes_them(tmp_path):
    """`1.204` beside decimal commas is over a thousand, and no decimal."""
    _, _, count, day = planned(tmp_path, GROUPED).columns

    assert (count.type, count.reading.numbers.value("1.204")) == ("int", 1204)
    assert "so that 1.234 is over a thousand" in count.reading.note
    assert (day.type, day.reading.dates.forms) == ("date", ("D.M.Y",))


@pytest.mark.parametrize(
    ("others", "written", "kind", "said"),
    [
        pytest.param("0,5", "1,204", "decimal(10,3)", "decimals after a comma", id="commas"),
        pytest.param("0.5", "1,204", "int", "over a thousand", id="thousands"),
        pytest.param("0.5", "1.204", "decimal(10,3)", "", id="points"),
        pytest.param("7", "1.204", "decimal(10,3)", "a little over one", id="nothing tells"),
        pytest.param("7", "1,204", "string", "", id="a comma of which nothing tells"),
    ],
)
def test_others_tell_what_a_number_is_or_it_is_said(tmp_path, others, written, kind, said):
    (_, column) = planned(tmp_path, f"a\tb\n{others}\t{written}\n").columns

    assert column.type == kind
    assert said in column.reading.note
    assert bool(column.reading.unclear) == (kind == "string")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a,b\nx,950\nx,1.204\n", id="some without thousands"),
        pytest.param("a;b\nx;1.204\n", id="semicolons, as where decimals have commas"),
        pytest.param("a;b;c\nx;1.204;52.52001\n", id="semicolons, and a point in coordinates"),
        pytest.param('a,b,c,d\nx,1.204,"0,5",0.5\n', id="others have either"),
        pytest.param('a,b,c\nx,1.204,"0,5"\nx,4000,"0,5"\n', id="thousands without a point"),
    ],
)
def test_a_number_that_may_be_over_a_thousand_stays_text_and_is_said(tmp_path, text):
    column = planned(tmp_path, text).columns[1]

    assert column.type == "string"
    assert "over a thousand" in column.reading.unclear


def test_an_order_of_day_and_month_is_taken_from_other_columns(tmp_path):
    text = "id,ordered,due\n" + "".join(
        f"{n},{n + 9}/02/2026,0{n}/02/2026\n" for n in (3, 4, 5)
    )
    _, ordered, due = planned(tmp_path, text).columns

    assert ordered.reading.dates.forms == due.reading.dates.forms == ("D/M/Y",)


@pytest.mark.parametrize(
    ("header", "personal", "subject"),
    [
        ("Kunden Nr,Name,Geburtsdatum,Straße,Ort", "Name Geburtsdatum Straße", "Kunden Nr"),
        ("Kundennummer,Kundenname,Lieferadresse", "Kundenname Lieferadresse", "Kundennummer"),
        ("Kunde,Betrag", "", "Kunde"),
        ("KdNr,Betrag", "", "KdNr"),
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
def test_people_are_seen_in_several_languages(tmp_path, header, personal, subject):
    names = header.split(",")
    rows = "".join(",".join(f"{name[:3]}w{n}" for name in names) + "\n" for n in range(5))
    plan = planned(tmp_path, f"{header}\n{rows}")

    assert " ".join(column.delivered for column in plan.personal_columns) == personal
    assert (plan.subject and plan.subject.delivered) == subject


def test_words_joined_with_a_number_are_named_as_keys(tmp_path):
    rows = "".join(f"{n},{n % 3}\n" for n in range(20))
    assert planned(tmp_path, f"Bestellnummer,Art\n{rows}").key == ("Bestellnummer",)


def test_what_comes_nearest_to_a_key_is_said(tmp_path):
    rows = "".join(f"{n},{n % 4},{n % 2}\n" for n in (*range(20), 7, 7))
    plan = planned(tmp_path, f"order_id,line_no,n\n{rows}", "order_id,n\n,1\n")

    assert (plan.key, plan.chosen_key.near.columns) == ((), ("order_id",))
    assert (plan.chosen_key.near.rows, plan.chosen_key.near.repeated_rows) == (23, 3)
    assert silver_notes(plan)[0] == (
        "No column is a key: each delivered line is a row. order_id comes nearest: 3 of 23 rows"
        " have nothing there, or what another row has."
    )


def test_that_nothing_is_named_as_a_key_is_said(tmp_path):
    plan = planned(tmp_path, "day,n\n2026-01-01,1\n2026-01-01,2\n")
    assert "None is named as keys are" in silver_notes(plan)[0]


def test_the_row_of_a_file_that_has_too_many_fields_is_said(tmp_path):
    path = put(tmp_path, "a.csv", "id,secret\n1,x\n2,y,hunter2\n")

    with pytest.raises(LakehouseError, match="found 3 fields in row 2; expected 2") as error:
        inspect_files([path])
    assert "hunter2" not in str(error.value)


def test_a_number_of_something_is_no_key(tmp_path):
    rows = "".join(f"{n}\n" for n in range(20))
    plan = planned(tmp_path, f"Number of Laps\n{rows}")
    assert (plan.key, plan.chosen_key.near, types(plan)) == (
        (),
        None,
        {"number_of_laps": "int"},
    )


def test_names_of_people_in_a_column_that_is_called_as_one_are_personal(tmp_path):
    plan = planned(tmp_path, "Driver,Team\nAda Lovelace,Red Racing\nBob Ross,Blue Racing\n")
    assert [column.delivered for column in plan.personal_columns] == ["Driver"]


def test_numbers_in_a_name_stay_in_it(tmp_path):
    plan = planned(tmp_path, "week-1,1st Week,2024 votes,2023 votes,2013$\na,b,c,d,e\n")
    assert [column.name for column in plan.columns] == [
        "week_1",
        "week_1st",
        "votes_2024",
        "votes_2023",
        "column_5",
    ]


@pytest.mark.parametrize(
    "name",
    ["order_id", "InvoiceNo", "id", "codigo_cliente", "code_region", "Rechnungsnr", "id_2"],
)
def test_a_key_is_named_by_its_last_word_or_its_first(name):
    assert is_key_name(name)


@pytest.mark.parametrize(
    "name",
    ["third_no_advance", "no_estimate", "number_of_laps", "line_total", "item price", "%"],
)
def test_a_word_in_between_tells_of_no_key(name):
    assert not is_key_name(name)


def test_a_measure_that_is_unique_by_chance_is_no_key(tmp_path):
    """Merged by it, later rows of one value would take each other's place."""
    rows = "".join(f"t{n},0.{n}5\n" for n in range(10, 30))
    plan = planned(tmp_path, f"team,votes no\n{rows}")
    assert (plan.key, plan.chosen_key.near) == ((), None)


def test_rows_that_are_delivered_again_are_counted(tmp_path):
    """A second export of the same rows would be summed twice, without a word."""
    day = "".join(f"x,2026-01-01,{n}\n" for n in range(5))
    in_other_order = "".join(f"2026-01-01,{n},x\n" for n in range(4))
    plan = planned(tmp_path, f"a,day,n\n{day}", f"day,n,a\n{in_other_order}2026-01-01,9,x\n")

    assert plan.repeated_rows == (4, 10)
    assert "4 of 10 rows have in all columns what a row before has" in silver_notes(plan)[1]


@pytest.mark.parametrize(
    "values",
    [("1 204,50", "12,00"), ("1'204.50", "3"), ("12 %", "3 %"), ("€ 12,50", "7,00 €"), ("$5",)],
)
def test_numbers_with_other_signs_stay_text_and_are_said(tmp_path, values):
    rows = "".join(f'x,"{value}"\n' for value in values)
    (_, column) = planned(tmp_path, f"a,b\n{rows}").columns

    assert column.type == "string"
    assert "signs of money" in column.reading.unclear


@pytest.mark.parametrize("number", ["030 123 456", "+49 30 123 456", "0171 555 123"])
def test_numbers_of_phones_are_none_of_those(tmp_path, number):
    plan = planned(tmp_path, f"a,b\nx,{number}\n")
    assert [column.delivered for column in plan.personal_columns] == ["b"]


def test_a_word_for_nothing_may_be_a_code_among_text(tmp_path):
    plan = planned(tmp_path, "country_id,n\nNA,1\nZM,-\nZW,3\n")

    assert (plan.key, types(plan)) == (("country_id",), {"country_id": "string", "n": "int"})
    assert [column.has_blanks for column in plan.columns] == [False, True]


def test_a_column_of_words_for_nothing_is_empty(tmp_path):
    (_, column) = planned(tmp_path, "a,b\nx,NA\nx,-\n").columns
    assert column.reading.unclear == "empty in all rows"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("#chrom,start\nchr1,1\nchr1,3\n", id="a header that begins with #"),
        pytest.param("#id,name\na,b\nc,d\n", id="a header with #, and text"),
        pytest.param("id,note\n1,a;b\n2,c;d\n", id="another delimiter in each row"),
        pytest.param('id,text\n1,"a, b"\n2,"two\nlines"\n3,c\n', id="quoted line ends"),
        pytest.param("name\nAda\nBob\n", id="one column"),
    ],
)
def test_a_header_in_the_first_line_is_taken(tmp_path, text):
    check_files([put(tmp_path, "a.csv", text)])


def test_a_name_in_another_unicode_normal_form_is_the_same(tmp_path):
    composed, decomposed = (
        unicodedata.normalize(form, "id,Größe\n1,10\n2,11\n") for form in ("NFC", "NFD")
    )
    plan = planned(tmp_path, decomposed, composed)

    assert [column.delivered for column in plan.columns] == ["id", "Gr\u00f6\u00dfe"]
    feed = Feed("f", ["id", "Gro\u0308\u00dfe"], table="bronze.f")
    assert feed.named(["Gr\u00f6\u00dfe", "x"]) == ("Gro\u0308\u00dfe", "x")


def test_two_columns_differ_in_more_than_their_normal_form():
    with pytest.raises(DeclarationError, match="more than once"):
        Feed("f", ["Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"], table="bronze.f")


def test_the_end_of_a_file_name_may_be_in_upper_case(tmp_path):
    found = inspect_files([put(tmp_path, "SALES.CSV", "id\n1\n")])
    assert [file.file_format for file in found.files] == ["csv"]


def typed(name: str, *texts: str) -> Reading:
    """How a column with these texts is read."""
    profile = ColumnProfile(name)
    profile.add(dict.fromkeys(texts, 1))
    return reading_of(profile)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("code", ["+49", "49", "+41", "41", "33"]),
        ("dial", ["+49", "+43"]),
        ("slot_id", ["1E5", "10E4", "2e1", "20"]),
        ("x", ["12E3", "5"]),
        ("clause_no", ["2.1", "2.10"]),
        ("clause_no", ["2.1", "2.2"]),
        ("version", ["1.9", "2.0"]),
        ("x", ["1.10", "1.2", "2.0"]),
        ("pos_no", ["1,1", "1,10"]),
        ("x", ["007.1", "7.1"]),
        ("tariff", ["0101.21", "2101.30"]),
        ("order_no", ["17", "17.0"]),
        ("order_no", ["-0", "0"]),
        ("sku", ["17", " 17", "18 "]),
        ("x", ["1,234.50", "1234.5"]),
        ("country", ["NO", "NO "]),
        ("x", ["yes", "true"]),
        ("x", ["True", "true", "false"]),
    ],
)
def test_what_may_be_a_code_stays_text(name, texts):
    assert typed(name, *texts).type == "string"


@pytest.mark.parametrize(
    ("name", "texts", "expected"),
    [
        ("order_no", ["17", "18"], "bigint"),
        ("customer_id", ["17.0", "18.0"], "bigint"),
        ("order_no", [" 17", " 170"], "bigint"),
        ("x", ["2.10", "2.25"], "decimal(10,2)"),
        ("x", ["2.1", "2.25", "3"], "decimal(10,2)"),
        ("x", ["2.0", "2.25"], "decimal(10,2)"),
        ("x", ["10", "10.50"], "decimal(10,2)"),
        ("x", ["0.30000000000000004", "0.1"], "double"),
        ("x", ["0.1234567890123456789", "0.1234567890123456788"], "decimal(23,19)"),
        ("sold_on", ["1/2/2026 8:05", "11/12/2026 10:05"], "string"),
        ("sold_on", ["1/2/2026 8:05", "11/22/2026 10:05"], "timestamp"),
        ("sold_at", ["2026-01-02T08:05:00.123456000Z"], "timestamp"),
        ("paid", ["Yes", "No"], "boolean"),
        ("paid", ["false"], "boolean"),
        ("updated", ["1773000000123", "999999999999"], "timestamp"),
        ("created_at", ["1773000000"], "bigint"),
        ("updated", ["1773000000123", "0"], "bigint"),
        ("update_no", ["1773000000123"], "bigint"),
        ("ean", ["4006381333931"], "bigint"),
    ],
)
def test_one_notation_is_typed_without_a_note_on_it(name, texts, expected):
    reading = typed(name, *texts)
    assert reading.type == expected
    assert "become equal" not in reading.note


@pytest.mark.parametrize(
    ("name", "texts", "example"),
    [
        ("amount", ["2.5", "2.50"], "2.1 and 2.10"),
        ("Einzelpreis", ["2,5", "2,50"], "decimal commas, no points so far, notations"),
        ("x", ["-5", "+5", "5"], "+49 and 49"),
        ("x", ["1.5e3", "1500.0"], "1.5e3 and 1500"),
        ("sold_on", ["2026-01-31", "31.01.2026"], "1.2.2026 and 2026-02-01"),
        ("sold_on", ["1.2.2026", "01.02.2026"], "1.2.2026 and 2026-02-01"),
        ("at", ["2026-01-31T08:00:00.1234567Z"], "1.2.2026 and 2026-02-01"),
        ("at", ["2026-01-31T08:00Z", "2026-01-31T09:00+01:00"], "8:00 and 08:00"),
        ("at", ["2026-01-31 08:00", "2026-01-31 08:00:00"], "1.2.2026 and 2026-02-01"),
    ],
)
def test_measures_and_times_may_lose_their_notation_with_a_note(name, texts, example):
    reading = typed(name, *texts)
    assert reading.type != "string"
    assert "notations that become equal" in reading.note
    assert example in reading.note


def test_a_day_in_two_notations_is_no_part_of_a_key(tmp_path):
    """As texts they are different, and as dates one row would replace the other."""
    rows = "".join(f"s{n},2026-05-01,{n}\n" for n in range(12))
    other = rows.replace("2026-05-01", "01.05.2026").replace(",11\n", ",12\n")
    plan = planned(tmp_path, f"station_id,day,v\n{rows}", f"station_id,day,v\n{other}")
    assert plan.key == ()


def test_milliseconds_since_1970_order_versions(tmp_path):
    rows = "".join(f"q{n},{1773000000000 + n}\n" for n in range(12))
    plan = planned(tmp_path, f"quake_id,updated\n{rows}")
    assert (plan.moment.name, plan.moment.reading.note) == (
        "updated",
        "milliseconds since 1970",
    )
