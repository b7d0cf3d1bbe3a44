"""Ids are compared in one way, whoever compares them: Python, Arrow or Spark."""

import random
import sys

import pyarrow as pa
import pytest

from lakehouse.iceberg.erasure.arrow_ids import is_blank, is_id_among, normal_ids
from lakehouse.iceberg.erasure.normal_id_sql import normal_id_sql
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.person import normal_id
from lakehouse_tests.frames import frame_of

_SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
_PARTS = [*_SPACES, *"+-007xÄ٣\x00\u200b\ufeff\x1b"]


def some_texts() -> list[str]:
    """Texts of spaces, digits, signs and others; each space of Unicode is in one."""
    chance = random.Random()
    texts = [f"{space}+07{space}" for space in _SPACES]
    for _ in range(1000):
        texts.append("".join(chance.choices(_PARTS, k=chance.randint(0, 6))))
    return texts


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
