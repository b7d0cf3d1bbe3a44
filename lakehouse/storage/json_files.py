"""JSON files of a home, validated against types."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.errors import LakehouseError
from lakehouse.storage.atomic_files import replace_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def read_json(file: Path, kind: Any) -> Any:
    """Read a file as a value of a type; an error states file, field and expectation."""
    from pydantic import ValidationError

    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return type_adapter(kind).validate_python(content)
    except ValidationError as error:
        # The invalid value is not shown: it may be an address with a secret.
        problem = error.errors(include_input=False, include_url=False)[0]
        part = ".".join(map(str, problem["loc"])) or "the file"
        raise _damaged(file, f"{part}: {problem['msg']}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def write_json(file: Path, value: Any, kind: Any, *, indent: int | None = None) -> None:
    """Write a value of a type as a JSON file, atomically."""
    content = type_adapter(kind).dump_python(value, mode="json", by_alias=True)
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    replace_text(file, f"{text}\n")


def _damaged(file: Path, found: str) -> LakehouseError:
    return LakehouseError(
        f"{file} is not what the lakehouse wrote there: found {found}; expected its own JSON.",
        next_step="Put a copy of it back, or move it away.",
    )


@cache
def type_adapter(kind: Any) -> "TypeAdapter[Any]":
    """Return the reader and writer of a type as JSON."""
    # Importing Pydantic takes a tenth of a second, which most commands do not need.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
