"""What certificates say of themselves, and why OpenSSL does not accept one."""

from __future__ import annotations

import datetime
import enum
from types import MappingProxyType
from typing import Final, NamedTuple

from cryptography import x509


class Rejection(enum.Enum):
    """Why the certificate of a peer is not accepted."""

    NOT_VALID_NOW = enum.auto()
    """It has expired, or is not valid yet."""
    OTHER_HOST = enum.auto()
    """It names another host, or another address."""
    NOT_TRUSTED = enum.auto()
    """For any other reason, mostly that no authority that we know has issued it."""


_REJECTIONS: Final = MappingProxyType(
    {
        9: Rejection.NOT_VALID_NOW,  # CERT_NOT_YET_VALID
        10: Rejection.NOT_VALID_NOW,  # CERT_HAS_EXPIRED
        62: Rejection.OTHER_HOST,  # HOSTNAME_MISMATCH
        64: Rejection.OTHER_HOST,  # IP_ADDRESS_MISMATCH
    }
)


def rejection_of(verify_code: int) -> Rejection:
    """What a code of OpenSSL means.

    Args:
        verify_code: An ``X509_V_ERR_*``, as in ``ssl.SSLCertVerificationError.verify_code``.
    """
    return _REJECTIONS.get(verify_code, Rejection.NOT_TRUSTED)


class Certificate(NamedTuple):
    """A certificate that we show to others.

    Attributes:
        source: The file that it was read from.
        subject: Its subject, as in RFC 4514.
        not_before: The first moment at which it is valid.
        not_after: The last one.
    """

    source: str
    subject: str
    not_before: datetime.datetime
    not_after: datetime.datetime

    def problem(self, now: datetime.datetime) -> str | None:
        """Why others do not accept it at a moment; None if it is valid then."""
        if now > self.not_after:
            return (
                f"the certificate in {self.source} ({self.subject}) expired at "
                f"{self.not_after.isoformat()}: replace the file, and its key, with valid ones"
            )
        if now < self.not_before:
            return (
                f"the certificate in {self.source} ({self.subject}) is not valid before "
                f"{self.not_before.isoformat()}: replace it, or correct this machine's clock"
            )
        return None


def certificate_of(pem: bytes, source: str) -> Certificate:
    """The first certificate of a file: those that follow are of its authorities.

    Raises:
        ValueError: There is none, or it cannot be read.
    """
    certificate = x509.load_pem_x509_certificate(pem)
    return Certificate(
        source=source,
        subject=certificate.subject.rfc4514_string(),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
    )
