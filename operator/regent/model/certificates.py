"""What is said by a certificate of ours: whose it is, and when it is valid."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from cryptography import x509


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
