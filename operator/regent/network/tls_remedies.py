"""What to do when TLS fails, by what OpenSSL says of it."""

from __future__ import annotations

import ssl

from regent.model.certificates import Rejection, rejection_of


def remedy_for_broker(error: Exception, *, host: str, own_problem: str | None) -> str | None:
    """What to do when no connection to a broker comes about; None if it is not known.

    Args:
        host: The broker's.
        own_problem: What is wrong with our certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        match rejection_of(error.verify_code):
            case Rejection.NOT_VALID_NOW:
                return "the broker's certificate is not valid now: renew it (ssl.keystore.location)"
            case Rejection.OTHER_HOST:
                return f"the broker's certificate must name {host} as a subject alternative name"
            case Rejection.NOT_TRUSTED:
                return (
                    "broker_tls_ca_file must have the authority that has issued the broker's "
                    "certificate"
                )
    if own_problem is not None:
        return own_problem
    if not isinstance(error, ssl.SSLError):
        return None
    if _is_alert(error):
        return (
            "the broker does not accept the certificate of Regent: see broker_tls_certificate_file "
            "and the broker's ssl.truststore.location"
        )
    return "the broker's listener may not speak TLS: see its listener.security.protocol.map"


def remedy_for_client(error: ssl.SSLError, *, own_problem: str | None) -> str:
    """What to do when the TLS handshake with a client fails.

    Args:
        own_problem: What is wrong with the certificate of the endpoint.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        if rejection_of(error.verify_code) is Rejection.NOT_VALID_NOW:
            return "the client's certificate is not valid now: renew it"
        return "endpoint_tls_client_ca_file must have the authority of the client's certificate"
    if own_problem is not None:
        return own_problem
    if "DID_NOT_RETURN_A_CERTIFICATE" in _reason(error):
        return "give the client a certificate, or see endpoint_tls_client_auth"
    if _is_alert(error):
        return (
            "the client does not accept the endpoint's certificate: its trust store must have the "
            "authority of endpoint_tls_certificate_file, and the certificate the advertised host"
        )
    return "the endpoint has TLS: see the client's security.protocol"


def remedy_for_replica(error: Exception | None, *, own_problem: str | None) -> str:
    """What to do when another replica ends a TLS connection before it has answered. One that does
    not accept our certificate ends it without a word.

    Args:
        error: What was seen; None: the end, and nothing else.
        own_problem: What is wrong with our certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        if rejection_of(error.verify_code) is Rejection.NOT_VALID_NOW:
            return (
                "the other replica's certificate is not valid now: renew its "
                "replica_tls_certificate_file"
            )
        return (
            "replica_tls_ca_file must have the authority that has issued the other replica's "
            "certificate"
        )
    if own_problem is not None:
        return own_problem
    return (
        "the other replica may not accept our certificate: its replica_tls_ca_file must have the "
        "authority of our replica_tls_certificate_file; or it has no replica_tls"
    )


def _is_alert(error: ssl.SSLError) -> bool:
    return "ALERT" in _reason(error)


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's name of what went wrong. Not every error has one."""
    return getattr(error, "reason", None) or ""
