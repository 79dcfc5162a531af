from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v0 import response as api_versions_v0
from kio.schema.describe_configs.v1 import response as describe_configs
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v0.response import SaslAuthenticateResponse
from kio.schema.sasl_authenticate.v1 import response as sasl_authenticate_v1
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i8, i16, i32Timedelta, i64Timedelta

from regent.protocol import connection_setup as setup
from regent.protocol.api_versions import VersionRange, parse_protocol_version
from regent.protocol.primitives import DecodeError
from tests.support.stub_broker import encode


def test_api_versions_falls_back_to_version_0() -> None:
    v0 = api_versions_v0
    refused = encode(v0.ApiVersionsResponse(error_code=ErrorCode.unsupported_version, api_keys=()))
    with pytest.raises(setup.UnknownApiVersionsError, match="version 3"):
        setup.decode_api_versions_response(3, refused)
    with pytest.raises(DecodeError, match="UNSUPPORTED_VERSION"):
        setup.decode_api_versions_response(0, refused)
    accepted = v0.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(v0.ApiVersion(api_key=i16(4), min_version=i16(0), max_version=i16(1)),),
    )
    decoded = setup.decode_api_versions_response(0, encode(accepted))
    assert decoded == {4: VersionRange(0, 1)}
    assert setup.api_versions_request("1", version=0).flexible is False
    assert setup.api_versions_request("1").flexible is True


@pytest.mark.parametrize(
    ("configs", "listener"),
    [
        ({"security.inter.broker.protocol": "SSL"}, "SSL"),
        ({"security.inter.broker.protocol": "PLAINTEXT", "inter.broker.listener.name": "I"}, "I"),
        ({"control.plane.listener.name": "C", "inter.broker.listener.name": "I"}, "C"),
        ({"control.plane.listener.name": None, "inter.broker.listener.name": None}, None),
        ({}, None),
    ],
)
def test_the_listener_of_controllers(configs: dict[str, str | None], listener: str | None) -> None:
    settings = setup.decode_broker_settings_response(_described(configs))
    assert settings == setup.BrokerSettings(None, listener, topics={})


def test_settings_that_topic_configurations_depend_on() -> None:
    configs = {"log.retention.ms": None, "log.cleanup.policy": "delete", "log.dirs": "/data"}
    settings = setup.decode_broker_settings_response(_described(configs))
    assert isinstance(settings, setup.BrokerSettings)
    assert settings.topics == {"log.retention.ms": None, "log.cleanup.policy": "delete"}


def test_the_protocol_version() -> None:
    body = _described({"inter.broker.protocol.version": "2.8-IV1"})
    settings = setup.decode_broker_settings_response(body)
    assert settings == setup.BrokerSettings(parse_protocol_version("2.8-IV1"), None, topics={})
    with pytest.raises(DecodeError, match="later"):
        setup.decode_broker_settings_response(
            _described({"inter.broker.protocol.version": "later"})
        )


def test_a_broker_may_refuse_to_tell() -> None:
    body = _described({}, error_code=ErrorCode.cluster_authorization_failed)
    assert setup.decode_broker_settings_response(body) == "CLUSTER_AUTHORIZATION_FAILED"


def test_an_answer_of_another_broker() -> None:
    body = _described({}, error_code=ErrorCode.invalid_request)
    with pytest.raises(setup.OtherBrokerError, match="another broker answers there"):
        setup.decode_broker_settings_response(body)
    with pytest.raises(setup.OtherBrokerError):
        setup.check_identity(body)
    setup.check_identity(_described({}, error_code=ErrorCode.cluster_authorization_failed))
    setup.check_identity(_described({"inter.broker.protocol.version": "later"}))


def test_sasl_errors_name_what_the_broker_offers() -> None:
    refused = SaslHandshakeResponse(
        error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=("PLAIN", "GSSAPI")
    )
    with pytest.raises(setup.AuthenticationError, match="PLAIN, GSSAPI"):
        setup.check_sasl_handshake_response(encode(refused))
    for message, shown in ((None, "SASL_AUTHENTICATION_FAILED"), ("go away", "go away")):
        failed = SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed, error_message=message, auth_bytes=b""
        )
        with pytest.raises(setup.AuthenticationError, match=shown):
            setup.decode_sasl_authenticate_response(encode(failed), version=0)


def test_how_long_a_session_lasts_is_known_where_the_broker_says_it() -> None:
    v0 = SaslAuthenticateResponse(error_code=ErrorCode.none, error_message=None, auth_bytes=b"a")
    v1 = sasl_authenticate_v1.SaslAuthenticateResponse(
        error_code=ErrorCode.none,
        error_message=None,
        auth_bytes=b"b",
        session_lifetime=i64Timedelta.parse(datetime.timedelta(seconds=2.5)),
    )
    assert setup.decode_sasl_authenticate_response(encode(v0), version=0) == (b"a", 0)
    assert setup.decode_sasl_authenticate_response(encode(v1), version=1) == (b"b", 2.5)


@pytest.mark.parametrize(
    ("supported", "version"),
    [({}, 0), ({36: VersionRange(0, 0)}, 0), ({36: VersionRange(0, 2)}, 1)],
)
def test_old_brokers_do_not_say_it(supported: dict[int, VersionRange], version: int) -> None:
    assert setup.sasl_authenticate_version(supported) == version
    assert setup.sasl_authenticate_request(b"", version=version).api_version == version


@given(body=st.binary(max_size=60))
def test_garbage_is_refused_or_makes_sense(body: bytes) -> None:
    decoders: list[Any] = [
        lambda: setup.decode_api_versions_response(0, body),
        lambda: setup.decode_api_versions_response(3, body),
        lambda: setup.decode_broker_settings_response(body),
        lambda: setup.check_identity(body),
        lambda: setup.check_sasl_handshake_response(body),
        lambda: setup.decode_sasl_authenticate_response(body, version=0),
        lambda: setup.decode_sasl_authenticate_response(body, version=1),
    ]
    for decode in decoders:
        try:
            decode()
        except (DecodeError, setup.AuthenticationError, setup.OtherBrokerError):
            continue


@pytest.mark.parametrize("version", [0, 3])
def test_answers_that_announce_more_than_they_have_take_no_memory(version: int) -> None:
    """In the encoding of each answer, an array of two thousand million elements, and a null one."""
    no_error = b"\x00\x00"
    huge = b"\x7f\xff\xff\xff" if version == 0 else b"\xff\xff\xff\xff\x0f"
    with pytest.raises(DecodeError, match="longer than the buffer"):
        setup.decode_api_versions_response(version, no_error + huge)
    null = b"\xff\xff\xff\xff" if version == 0 else b"\x00"
    assert not setup.decode_api_versions_response(version, no_error + null + bytes(5))
    one = _described({"log.cleanup.policy": "delete"})
    for cut in range(len(one)):
        with pytest.raises(DecodeError):
            setup.decode_broker_settings_response(one[:cut] + b"\x7f\xff\xff\xff")
    with pytest.raises(DecodeError):
        setup.check_sasl_handshake_response(no_error + b"\x7f\xff\xff\xff")
    with pytest.raises(DecodeError):
        setup.decode_sasl_authenticate_response(no_error + b"\xff\xff\x7f\xff\xff\xff", version=1)


def _described(configs: dict[str, str | None], *, error_code: ErrorCode = ErrorCode.none) -> bytes:
    result = describe_configs.DescribeConfigsResult(
        error_code=error_code,
        error_message=None,
        resource_type=i8(4),
        resource_name="1",
        configs=tuple(
            describe_configs.DescribeConfigsResourceResult(
                name=name, value=value, read_only=True, is_sensitive=False, synonyms=()
            )
            for name, value in configs.items()
        ),
    )
    throttle = i32Timedelta.parse(datetime.timedelta(0))
    return encode(
        describe_configs.DescribeConfigsResponse(throttle_time=throttle, results=(result,))
    )
