"""The certificate authorities of this machine, as a trust store for Java.

The JVM that pip installs has its own list, which lacks the authorities of a company's proxy.
"""

import ssl
import warnings
from pathlib import Path


def system_certificates() -> list[bytes]:
    """Return the distinct certificates that Python's TLS trusts, as DER; empty if unknown."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        files = [Path(paths.cafile)]
    else:
        folder = sorted(Path(paths.capath).iterdir()) if paths.capath else []
        files = [file for file in folder if file.is_file()]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for file in files:
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            # A file without certificates.
            continue
    return context.get_ca_certs(binary_form=True)


def java_trust_store(certificates: list[bytes]) -> bytes:
    """Return certificates as a PKCS #12 file that Java reads without a password."""
    from cryptography.hazmat.primitives.serialization import NoEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import (
        PKCS12Certificate,
        serialize_java_truststore,
    )
    from cryptography.x509 import load_der_x509_certificate

    with warnings.catch_warnings():
        # Some old authorities have serial numbers that RFC 5280 does not allow.
        warnings.simplefilter("ignore")
        entries = [
            PKCS12Certificate(load_der_x509_certificate(der), f"authority-{number}".encode())
            for number, der in enumerate(certificates)
        ]
    return serialize_java_truststore(entries, NoEncryption())
