"""Election: ``/controller`` and ``/controller_epoch``."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regent.model.active_regent import ActiveRegent, RegentEndpoint, ServedResources
from regent.model.cluster import Address
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.decoding import INT32_MAX, Int32, decimal, json_decoder, json_object
from regent.zk_data.operations import ANY_VERSION, Check


class _Controller(msgspec.Struct, rename="camel"):
    brokerid: Int32
    election_path: str | None = None
    kraft_controller_epoch: Int32 = -1


class _ServedResources(msgspec.Struct, rename="camel"):
    lease: str | None
    namespaces: tuple[str, ...] = ()
    cluster_name: str | None = None
    is_default: bool = False


class _Address(msgspec.Struct):
    host: str
    port: int


class _Endpoint(msgspec.Struct):
    protocols: dict[str, _Address] = {}
    listeners: dict[str, _Address] = {}


class _Regent(msgspec.Struct, rename="camel"):
    custom_resources: _ServedResources | None = None


class _ReachedRegent(msgspec.Struct):
    regent: _Endpoint | None = None


_decode = json_decoder(_Controller)
_decode_regent = json_decoder(_Regent)
_decode_endpoint = json_decoder(_ReachedRegent)


def decode_controller(data: bytes) -> int:
    """Id of the elected controller. Only ``brokerid`` is read, as in Kafka.

    Raises:
        MalformedZNodeError: If there is none.
    """
    return _decode(paths.CONTROLLER, data).brokerid


def decode_election_path(data: bytes) -> str | None:
    """Where the replicas of the Regent that holds ``/controller`` elect one among themselves.

    None if the holder is none, or the node does not decode.
    """
    try:
        return _decode(paths.CONTROLLER, data).election_path
    except MalformedZNodeError:
        return None


def decode_active_regent(data: bytes) -> ActiveRegent | None:
    """The Regent that holds ``/controller``; None if the holder is none, or does not decode.

    A member of a later version, which this one cannot decode, counts as missing.
    """
    try:
        holder = _decode(paths.CONTROLLER, data)
    except MalformedZNodeError:
        return None
    if holder.election_path is None:
        return None
    return ActiveRegent(holder.brokerid, _served_resources(data), _endpoint(data))


def _served_resources(data: bytes) -> ServedResources | None:
    try:
        said = _decode_regent(paths.CONTROLLER, data).custom_resources
    except MalformedZNodeError:
        return None
    if said is None:
        return None
    return ServedResources(said.lease, said.namespaces, said.cluster_name, said.is_default)


def _endpoint(data: bytes) -> RegentEndpoint | None:
    try:
        said = _decode_endpoint(paths.CONTROLLER, data).regent
    except MalformedZNodeError:
        return None
    if said is None:
        return None
    return RegentEndpoint(_addresses(said.protocols), _addresses(said.listeners))


def _addresses(by_name: Mapping[str, _Address]) -> dict[str, Address]:
    return {name: Address(each.host, each.port) for name, each in by_name.items()}


def is_kraft_controller(data: bytes) -> bool:
    """Whether a KRaft controller has written ``/controller``, as it does in a migration (KIP-866).

    False if the node does not decode: no program of Kafka's has written it.
    """
    try:
        return _decode(paths.CONTROLLER, data).kraft_controller_epoch > 0
    except MalformedZNodeError:
        return False


def encode_controller(
    controller_id: int,
    timestamp_ms: int,
    *,
    election_path: str | None = None,
    resources: ServedResources | None = None,
    endpoint: RegentEndpoint | None = None,
) -> bytes:
    """Version 2, as Kafka 3.4 and later write it; earlier brokers ignore what they do not know.

    A ``kraftControllerEpoch`` above 0 would make brokers refuse to write configuration.

    Args:
        controller_id: Id of the controller.
        timestamp_ms: When it was elected.
        election_path: A member of Regent's own, which brokers ignore: see
            :func:`decode_election_path`.
        resources: Another one: see :func:`decode_active_regent`.
        endpoint: Another one, likewise.
    """
    members: list[tuple[str, object]] = [
        ("version", 2),
        ("brokerid", controller_id),
        ("timestamp", str(timestamp_ms)),
        ("kraftControllerEpoch", -1),
    ]
    if election_path is not None:
        members.append(("electionPath", election_path))
    if resources is not None:
        members.append(("customResources", resources.report()))
    if endpoint is not None:
        members.append(
            (
                "regent",
                {
                    "protocols": _as_json(endpoint.served),
                    "listeners": _as_json(endpoint.listener_addresses),
                },
            )
        )
    return json_object(members)


def _as_json(addresses: Mapping[str, Address]) -> dict[str, object]:
    return {name: address._asdict() for name, address in addresses.items()}


def decode_controller_epoch(data: bytes) -> int:
    """The controller epoch, which is stored as decimal text.

    Raises:
        MalformedZNodeError: If it is not a number, negative, or so high that the next election
            could not raise it within 32 bits.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MalformedZNodeError(paths.CONTROLLER_EPOCH, "not UTF-8") from error
    epoch = decimal(paths.CONTROLLER_EPOCH, text, of="the controller epoch")
    if not 0 <= epoch < INT32_MAX:
        raise MalformedZNodeError(paths.CONTROLLER_EPOCH, f"controller epoch {epoch}")
    return epoch


def encode_controller_epoch(epoch: int) -> bytes:
    """Inverse of :func:`decode_controller_epoch`."""
    return str(epoch).encode()


def checks_of_controller(epoch_zk_version: int) -> tuple[Check, ...]:
    """Return checks that hold while a process is the controller: the one that raised the controller
    epoch to this dataVersion.

    The epoch was not raised since, and ``/controller``, which ends with the session of the process,
    exists. The transaction that creates that node raises the epoch.
    """
    return (
        Check(paths.CONTROLLER_EPOCH, epoch_zk_version),
        Check(paths.CONTROLLER, ANY_VERSION),
    )
