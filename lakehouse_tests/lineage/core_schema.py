"""What OpenLineage's specification 2.0.2 asks of an event and of any facet, as a JSON schema."""

from typing import Any

_FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {
        "_producer": {"type": "string", "format": "uri"},
        "_schemaURL": {"type": "string", "format": "uri"},
    },
}
_FACETS = {"type": "object", "additionalProperties": _FACET}
_NAMED: dict[str, Any] = {
    "namespace": {"type": "string", "minLength": 1},
    "name": {"type": "string", "minLength": 1},
    "facets": _FACETS,
}


def _dataset(more: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["namespace", "name"],
        "properties": {**_NAMED, more: _FACETS},
        "additionalProperties": False,
    }


RUN_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job", "eventType"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri"},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": _FACETS},
            "additionalProperties": False,
        },
        "job": {
            "type": "object",
            "required": ["namespace", "name"],
            "properties": _NAMED,
            "additionalProperties": False,
        },
        "inputs": {"type": "array", "items": _dataset("inputFacets")},
        "outputs": {"type": "array", "items": _dataset("outputFacets")},
    },
    "additionalProperties": False,
}
