"""The certificate authorities that this machine trusts, as a file that Java reads.

The JVM that pip installs brings a list of its own, which knows nothing of a company's proxy, as
the machine does.
"""

import hashlib
import ssl
import struct
from collections.abc import Iterable
from pathlib import Path

_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
# What Java has its own file protected with; it is no secret, and guards against damage only.
_PASSWORD = "changeit"  # noqa: S105
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def system_certificates() -> list[bytes]:
    """Return the certificates that Python's TLS trusts here, each once; none where they are not
    in files.
    """
    paths = ssl.get_default_verify_paths()
    folder = sorted(Path(paths.capath).iterdir()) if paths.capath else []
    files = (
        [Path(paths.cafile)] if paths.cafile else [file for file in folder if file.is_file()]
    )
    return list(dict.fromkeys(der for file in files for der in _certificates(file)))


def java_key_store(certificates: Iterable[bytes]) -> bytes:
    """Write certificates in Java's own format, JKS, which needs no program to be made."""
    entries = [_entry(number, der) for number, der in enumerate(certificates)]
    body = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    salted = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted, usedforsecurity=False).digest()


def _entry(number: int, der: bytes) -> bytes:
    made_at = struct.pack(">Q", 0)
    certificate = _text("X.509") + struct.pack(">I", len(der)) + der
    return (
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _text(f"authority-{number}")
        + made_at
        + certificate
    )


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _certificates(file: Path) -> list[bytes]:
    parts = file.read_text(encoding="utf-8", errors="replace").split(_BEGIN)[1:]
    return [
        ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{part.partition(_END)[0]}{_END}")
        for part in parts
        if _END in part
    ]
