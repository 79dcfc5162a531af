"""Subjects of certificates beside what Java's ``X500Principal.getName()`` gives for them."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from regent.network.certificate_subject import subject_of

COUNTRY, STATE, CITY = (
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
)
ORGANIZATION, UNIT, COMMON_NAME = (
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COMMON_NAME,
)
LONG = "x" * 64


def certificate(*rdns: dict[x509.ObjectIdentifier, str]) -> bytes:
    """A certificate in DER with this subject, its parts in the order of the certificate."""
    subject = x509.Name(
        x509.RelativeDistinguishedName(
            [x509.NameAttribute(oid, value) for oid, value in rdn.items()]
        )
        for rdn in rdns
    )
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (
            [
                {COUNTRY: "DE"},
                {STATE: "Bavaria"},
                {CITY: "Munich"},
                {ORGANIZATION: "Example, Inc."},
                {UNIT: "Kafka"},
                {COMMON_NAME: "broker-1.example.org"},
            ],
            r"CN=broker-1.example.org,OU=Kafka,O=Example\, Inc.,L=Munich,ST=Bavaria,C=DE",
        ),
        ([{COMMON_NAME: ' #a+b=c<d>e;f"g\\h '}], r"CN=\ \#a\+b\=c\<d\>e\;f\"g\\h" + "\\ "),
        ([{COMMON_NAME: "  two  "}], "CN=\\ \\ two\\ \\ "),
        (
            [{COMMON_NAME: "größe 北"}, {NameOID.EMAIL_ADDRESS: "a@b.c"}],
            "1.2.840.113549.1.9.1=#16056140622e63,CN=größe 北",
        ),
        (
            [{COMMON_NAME: "x", NameOID.USER_ID: "u1"}, {NameOID.DOMAIN_COMPONENT: "org"}],
            "DC=org,CN=x+UID=u1",
        ),
        (
            [
                {NameOID.SERIAL_NUMBER: "123"},
                {NameOID.TITLE: "Dr"},
                {NameOID.STREET_ADDRESS: "Road 1"},
                {NameOID.GIVEN_NAME: "Ann"},
            ],
            "2.5.4.42=#0c03416e6e,STREET=Road 1,2.5.4.12=#0c024472,2.5.4.5=#1303313233",
        ),
        ([{NameOID.EMAIL_ADDRESS: LONG * 3}], f"1.2.840.113549.1.9.1=#1681c0{'78' * 192}"),
    ],
)
def test_subject_is_that_of_java(
    subject: list[dict[x509.ObjectIdentifier, str]], name: str
) -> None:
    assert subject_of(certificate(*subject)) == name


@pytest.mark.parametrize("raw", [b"", b"\x30\x03\x02\x01\x00", b"certificate"])
def test_what_is_no_certificate_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        subject_of(raw)
