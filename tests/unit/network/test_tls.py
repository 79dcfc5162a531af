"""TLS files that are renewed, replaced by halves, or no longer valid."""

from __future__ import annotations

import datetime
import logging
import ssl
from pathlib import Path

import pytest

from regent.model.certificates import certificate_of
from regent.network.tls import ReloadingTls, tls_to_brokers
from sandbox.pki import Authority, TlsFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def to_brokers(files: TlsFiles) -> ReloadingTls:
    return tls_to_brokers(
        authorities=files.ca_certificate, certificate=files.certificate, key=files.key
    )


def test_renewed_files_are_used(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    files = authority.issue("regent")
    tls = to_brokers(files)
    former = tls.context()
    assert tls.context() is former
    with caplog.at_level(logging.INFO):
        authority.renew(files)
        assert tls.context() is not former
    assert [record.message for record in caplog.records] == ["changed TLS files in use"]


def test_brokers_are_verified(authority: Authority) -> None:
    context = tls_to_brokers(authorities=authority.certificate).context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_expired_certificate_named(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    files = authority.issue("regent", is_expired=True)
    tls = to_brokers(files)
    for _ in range(3):
        tls.context()
    (entry,) = caplog.records
    assert entry.message == "Certificate is not valid"
    problem = tls.problem()
    assert problem is not None
    assert problem.startswith(f"the certificate in {files.certificate} (CN=regent")
    assert "expired at" in problem
    assert entry.__dict__["problem"] == problem
    authority.renew(files)
    tls.context()
    assert tls.problem() is None


def test_a_certificate_is_not_valid_before_its_time(authority: Authority) -> None:
    files = authority.issue("regent")
    certificate = certificate_of(files.certificate.read_bytes(), str(files.certificate))
    early = certificate.not_before - datetime.timedelta(seconds=1)
    assert "clock" in (certificate.problem(early) or "")
    assert certificate.problem(certificate.not_before) is None
    assert certificate.problem(certificate.not_after) is None
