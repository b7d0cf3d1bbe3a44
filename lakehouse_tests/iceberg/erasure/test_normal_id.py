"""Ids are compared in one way, whoever compares them: Python, Arrow or Spark."""

import random
import sys

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.arrow_ids import is_blank, is_id_among, normal_ids, text_of
from lakehouse.iceberg.erasure.suppression_list import normal_id_sql
from lakehouse.tables.person import normal_id
from lakehouse_tests.frames import frame_of

_SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
_PARTS = [*_SPACES, *"+-007.xÄ٣\x00\u200b\ufeff\x1b", ".0", "07"]


def some_texts() -> list[str]:
    """Texts of spaces, digits, signs and others; each space of Unicode is in one."""
    chance = random.Random()
    texts = [f"{space}+07{space}" for space in _SPACES]
    for _ in range(1000):
        texts.append("".join(chance.choices(_PARTS, k=chance.randint(0, 6))))
    return texts


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("17", "17"),
        ("17.0", "17"),
        (" +0017.00 ", "17"),
        ("-17.0", "-17"),
        ("-017", "-17"),
        ("170", "170"),
        ("17.5", "17.5"),
        ("2021.10", "2021.10"),
        ("1.0.0", "1.0.0"),
    ],
)
def test_an_integer_has_one_form(text: str, normal: str) -> None:
    assert normal_id(text) == normal


@pytest.mark.unit
def test_arrow_compares_ids_as_python_does() -> None:
    texts = some_texts()

    assert normal_ids(pa.array(texts)).to_pylist() == list(map(normal_id, texts))
    assert is_blank(pa.array(texts)).to_pylist() == [not text.strip() for text in texts]


@pytest.mark.unit
def test_arrow_finds_ids_in_all_their_forms() -> None:
    texts = some_texts()
    wanted = frozenset(map(normal_id, random.sample(texts, 100)))
    column = pa.chunked_array([[*texts, None], [], texts], pa.string())

    found = is_id_among(column, wanted).to_pylist()
    is_one = [normal_id(text) in wanted for text in texts]
    assert found == [*is_one, False, *is_one]


@pytest.mark.spark
def test_spark_compares_ids_as_python_does(embedded_engine: Engine) -> None:
    texts = some_texts()

    frame = frame_of(embedded_engine.spark, "id string", [(text,) for text in texts])

    compared = [row[0] for row in frame.selectExpr(normal_id_sql("id")).collect()]
    assert compared == list(map(normal_id, texts))


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind", ["decimal(11,2)", "decimal(20,0)", "double", "float", "bigint"]
)
def test_spark_compares_numbers_as_ids(embedded_engine: Engine, kind: str) -> None:
    numbers = ("17", "0", "12345680", "-17")
    rows = ", ".join(f"(CAST({number} AS {kind}))" for number in numbers)

    frame = embedded_engine.spark.sql(f"SELECT * FROM VALUES {rows} AS t(id)")

    compared = [row[0] for row in frame.selectExpr(normal_id_sql("id", kind)).collect()]
    assert compared == list(numbers)


@pytest.mark.spark
def test_spark_compares_floats_as_python_does(embedded_engine: Engine) -> None:
    numbers = (17.0, 17.5, 0.25, 1e20, 1e300)
    frame = frame_of(embedded_engine.spark, "id double", [(number,) for number in numbers])

    compared = [row[0] for row in frame.selectExpr(normal_id_sql("id", "double")).collect()]

    assert compared[:4] == [normal_id(text_of(number) or "") for number in numbers[:4]]
    assert compared[4] == "1.0E300"
