from __future__ import annotations

import ssl

import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.settings import ChannelSettings
from regent.protocol.sasl import SaslCredentials
from tests.support.fixed_tls import FixedTls

BROKER = Broker(
    1,
    1,
    tuple(
        EndPoint(f"L{number}", protocol, "h", number)
        for number, protocol in enumerate(("SSL", "PLAINTEXT", "SASL_SSL", "SASL_PLAINTEXT", "SSL"))
    ),
)
TLS = FixedTls(ssl.create_default_context())
SASL = SaslCredentials("PLAIN", "user", "pencil")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ChannelSettings(), ["PLAINTEXT"]),
        (ChannelSettings(tls=TLS), ["SSL", "SSL", "PLAINTEXT"]),
        (ChannelSettings(sasl=SASL), ["SASL_PLAINTEXT", "PLAINTEXT"]),
        (
            ChannelSettings(sasl=SASL, tls=TLS),
            ["SASL_SSL", "SSL", "PLAINTEXT", "SASL_PLAINTEXT", "SSL"],
        ),
    ],
)
def test_most_secure_listener_is_first(settings: ChannelSettings, expected: list[str]) -> None:
    assert [each.security_protocol for each in settings.candidates(BROKER)] == expected


def test_a_configured_listener_is_the_only_candidate() -> None:
    assert [each.port for each in ChannelSettings(listener="L1").candidates(BROKER)] == [1]
    assert ChannelSettings(listener="L0").candidates(BROKER) == ()
    without = ChannelSettings().candidates(BROKER)
    assert ChannelSettings(listener="other").candidates(BROKER) == without != ()
