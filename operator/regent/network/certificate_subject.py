"""The subject of a certificate as Kafka words it: in the form of RFC 2253, as Java has it."""

from __future__ import annotations

from typing import Any, Final

from cryptography import x509

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""Attributes that RFC 2253 names. Java writes others by number, with the value in hexadecimal."""

_ESCAPED: Final = ',=+<>#;"\\'


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, such as ``CN=broker-1,OU=kafka,O=Example``.

    It is what ``X500Principal.getName()`` gives, on which Kafka's default principals rest.

    Raises:
        ValueError: If the certificate cannot be read.
    """
    subject = x509.load_der_x509_certificate(certificate).subject
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(subject.rdns))


def _attribute(attribute: x509.NameAttribute[Any]) -> str:
    oid = attribute.oid.dotted_string
    keyword = _KEYWORDS.get(oid)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or oid}=#{_der(attribute).hex()}"
    return f"{keyword}={_escape(attribute.value)}"


def _escape(value: str) -> str:
    escaped = [f"\\{letter}" if letter in _ESCAPED else letter for letter in value]
    lead = len(value) - len(value.lstrip(" \r"))
    trail = len(value.rstrip(" \r"))
    return "".join(
        f"\\{letter}" if index < lead or index >= trail else letter
        for index, letter in enumerate(escaped)
    )


def _der(attribute: x509.NameAttribute[Any]) -> bytes:
    """The value of an attribute in DER: what follows its type in a name that has nothing else."""
    rest = x509.Name([attribute]).public_bytes()
    for _ in ("name", "relative distinguished name", "attribute"):
        start, _ = _extent(rest)
        rest = rest[start:]
    _, end = _extent(rest)
    return rest[end:]


def _extent(der: bytes) -> tuple[int, int]:
    """Where the contents of the first element begin and end."""
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    return start, start + length
