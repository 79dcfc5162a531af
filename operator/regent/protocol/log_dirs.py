"""DescribeLogDirs (KIP-113) as a client asks: the sizes of all replicas of a broker.

In version 4 where the broker has it: from there on the answer has the capacity of each directory's
volume (KIP-827), and from version 3 on an error code of its own. The controller's own question, and
its answer, are in :mod:`regent.protocol.describe_log_dirs`.
"""

from __future__ import annotations

from typing import Final

from regent.model.log_dirs import LogDirectory, LogDirs
from regent.protocol import describe_log_dirs
from regent.protocol.api_versions import UnsupportedBrokerError, VersionRange
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED, NONE, error_name
from regent.protocol.primitives import Reader, pack_int32, uvarint

API_KEY: Final = describe_log_dirs.API_KEY
VERSIONS: Final = (4, 1, 0)
"""In which a broker is asked, the best first."""

_FLEXIBLE_SINCE: Final = 2
_ERROR_SINCE: Final = 3
_CAPACITY_SINCE: Final = 4

_CAPACITY_MAX: Final = 2**53
"""Nine petabytes: up to here a capacity is taken for one, and planners calculate with it."""

_ALL_TOPICS: Final = pack_int32(-1)
_ALL_TOPICS_FLEXIBLE: Final = uvarint(0) + uvarint(0)
"""No array, and no tagged fields."""


def is_flexible(version: int) -> bool:
    """Whether requests and answers of a version are in the flexible encoding (KIP-482)."""
    return version >= _FLEXIBLE_SINCE


def chosen_version(supported: VersionRange | None) -> int:
    """The version in which to ask a broker.

    Args:
        supported: The versions that it understands; None: it does not know the request.

    Raises:
        UnsupportedBrokerError: There is none that Regent knows, too.
    """
    if supported is not None:
        for version in VERSIONS:
            if supported.lowest <= version <= supported.highest:
                return version
    raise UnsupportedBrokerError("it understands no version of DescribeLogDirs that Regent knows")


def encode_request(version: int) -> bytes:
    """The request body: everything in all directories."""
    return _ALL_TOPICS_FLEXIBLE if is_flexible(version) else _ALL_TOPICS


def decode_response(body: bytes, *, version: int) -> LogDirs | str:
    """What the broker has; or Kafka's name of the error with which it refuses to say.

    Before version 3 there is no such error: a broker lists no directory to a user without the right
    to describe the cluster, and every broker has one.

    Raises:
        DecodeError: If the body is malformed.
    """
    reader = Reader(body, flexible=is_flexible(version))
    reader.int32()  # throttle time
    code = reader.int16() if version >= _ERROR_SINCE else NONE
    sizes: dict[str, dict[int, int]] = {}
    offline: list[str] = []
    online: list[LogDirectory] = []
    is_known = version >= _CAPACITY_SINCE
    directories = reader.array_length()
    for _ in range(directories):
        error = reader.int16()
        path = reader.string()
        if error:
            offline.append(path)
        replicas, used = _read_sizes(reader, sizes)
        if version >= _CAPACITY_SINCE:
            capacity = reader.int64()
            reader.int64()  # usable bytes
            if not error:
                # some file systems have no size to tell: then Kafka says 0
                is_known = is_known and capacity > 0
                online.append(LogDirectory(path, capacity, used, replicas))
        reader.tags()
    if code or not directories:
        return error_name(code or CLUSTER_AUTHORIZATION_FAILED)
    total = sum(each.bytes for each in online)
    # those that have no end say exabytes (elastic ones of clouds), or the largest number there is
    if not (is_known and online) or total > _CAPACITY_MAX:
        return LogDirs(sizes, tuple(sorted(offline)))
    return LogDirs(
        sizes,
        tuple(sorted(offline)),
        total,
        tuple(sorted(online, key=lambda each: each.path)) if len(online) > 1 else (),
    )


def _read_sizes(reader: Reader, sizes: dict[str, dict[int, int]]) -> tuple[int, int]:
    """Add the replicas of one directory. Returns how many it has, and their bytes."""
    replicas = used = 0
    for _ in range(reader.array_length()):
        of_topic = sizes.setdefault(reader.string(), {})
        for _ in range(reader.array_length()):
            partition, size = reader.int32(), reader.int64()
            reader.int64()  # offset lag
            is_future = reader.boolean()
            reader.tags()
            if not is_future and size >= 0:
                of_topic[partition] = size
            replicas += 1
            used += max(0, size)
        reader.tags()
    return replicas, used
