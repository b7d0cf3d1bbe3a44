"""What a file is by its first bytes, and what its name says that it is."""

import re

_MAGICS = (
    (b"PAR1", "parquet"),
    (b"Obj\x01", "avro"),
    (b"PFA1", "puffin"),
    (b"SQLite format 3\0", "sqlite"),
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"LZ4Block", "lz4 block"),
    (b"\x82SNAPPY\0", "snappy"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PK\x03\x04", "zip"),
)
_ENDINGS = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".orc": "orc",
    ".puffin": "puffin",
    ".stats": "puffin",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".gz": "gzip",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".zip": "zip",
    ".json": "json",
    ".jsonl": "json",
    ".csv": "csv",
}
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
_TEXT_LIKE_ORC = re.compile(rb"ORC[\x20-\x7e\r\n\t]*")
"""A text that begins as ORC does."""
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_AT = 257
HEAD_BYTES = 512
TEXTS = frozenset({"json", "csv", "bytes"})
"""What no first bytes tell."""


def kind_by_content(head: bytes) -> str:
    """Return the kind of a file by its first bytes; `bytes` where they tell none."""
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if _BZIP2.match(head):
        return "bzip2"
    if head.startswith(b"ORC") and not _TEXT_LIKE_ORC.fullmatch(head[:64]):
        return "orc"
    if head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return "tar"
    return "json" if head.lstrip()[:1] in (b"{", b"[") else "bytes"


def kind_by_name(key: str) -> str:
    """Return the kind of a file by the ending of its name; `bytes` where it tells none."""
    for ending, kind in _ENDINGS.items():
        if key.lower().endswith(ending):
            return kind
    return "bytes"
