"""The requests that kazoo lacks, byte for byte against what kazoo and ZooKeeper's records say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.client import KazooClient
from kazoo.protocol import serialization as kazoo
from kazoo.protocol.states import WatchedEvent
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from regent.zk_data.operations import Check, Create, Delete, Operation, SetData, Written, ZNode
from regent.zookeeper.multi_read import GET_CHILDREN, GET_DATA, MultiRead
from regent.zookeeper.multi_write import (
    OK,
    RUNTIME_INCONSISTENCY,
    MultiWrite,
    serialize_acl,
    sizes_of,
)
from regent.zookeeper.reads import PATHS_PER_REQUEST, in_requests
from regent.zookeeper.recursive_watch_requests import AddWatch, RemoveWatches, SetWatches2
from regent.zookeeper.set_watches import SetWatches
from regent.zookeeper.writes import culprit_of

OPERATIONS: list[Operation] = [
    Check("/controller_epoch", 7),
    Create("/a", b"data"),
    Create("/a/ä", b"", ephemeral=True),
    Create("/a/s-", b"x", sequential=True),
    Create("/a/es-", b"x", ephemeral=True, sequential=True, exist_ok=True),
    SetData("/a", b"new", 3),
    SetData("/", b"", -1),
    Delete("/a", 4, missing_ok=True),
]
HEADER = struct.Struct(">iBi")
STAT = struct.Struct(">qqqqiiiqiiq")
END = HEADER.pack(-1, 1, -1)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


@pytest.mark.parametrize("acl", [OPEN_ACL_UNSAFE, OPEN_ACL_UNSAFE + READ_ACL_UNSAFE])
@pytest.mark.parametrize("chroot", ["", "/kafka/ö"])
def test_a_multi_is_what_kazoo_would_send(chroot: str, acl: list[ACL]) -> None:
    theirs = kazoo.Transaction(
        [
            kazoo.CheckVersion(chroot + "/controller_epoch", 7),
            kazoo.Create(chroot + "/a", b"data", acl, 0),
            kazoo.Create(chroot + "/a/ä", b"", acl, 1),
            kazoo.Create(chroot + "/a/s-", b"x", acl, 2),
            kazoo.Create(chroot + "/a/es-", b"x", acl, 3),
            kazoo.SetData(chroot + "/a", b"new", 3),
            kazoo.SetData(chroot or "/", b"", -1),
            kazoo.Delete(chroot + "/a", 4),
        ]
    )
    mine = MultiWrite(OPERATIONS, chroot=chroot, acl=serialize_acl(acl))
    assert mine.type == kazoo.Transaction.type
    assert bytes(mine.serialize()) == bytes(theirs.serialize())


def test_access_control_lists_are_what_java_would_send() -> None:
    assert serialize_acl(CREATOR_ALL_ACL + READ_ACL_UNSAFE) == (
        struct.pack(">ii", 2, 31)
        + text("auth")
        + text("")  # kazoo sends a null, to the same effect
        + struct.pack(">i", 1)
        + text("world")
        + text("anyone")
    )


def test_the_size_of_a_multi_is_known_beforehand() -> None:
    acl = serialize_acl(CREATOR_ALL_ACL + READ_ACL_UNSAFE)
    for operation in OPERATIONS:
        if operation.path.isascii() and operation.path != "/":
            request = MultiWrite([operation], chroot="/kafka", acl=acl).serialize()
            sizes = sizes_of([operation], overhead=len("/kafka"), acl=len(acl))
            assert list(sizes) == [len(request) - len(END)]


def test_answers_of_a_multi() -> None:
    data = (
        b"head"
        + HEADER.pack(13, 0, 0)
        + HEADER.pack(1, 0, 0)
        + text("/kafka/ö/s-0000000012")
        + HEADER.pack(5, 0, 0)
        + STAT.pack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
        + HEADER.pack(2, 0, 0)
        + END
    )
    answers = MultiWrite([], chroot="/kafka/ö", acl=b"").deserialize(data, 4)
    assert answers == [Written(-1), Written(0, "/s-0000000012"), Written(5), Written(-1)]
    assert culprit_of(answers) is None


def test_answers_of_a_multi_that_failed() -> None:
    codes = [OK, OK, -103, RUNTIME_INCONSISTENCY]
    data = b"".join(HEADER.pack(-1, 0, code) + struct.pack(">i", code) for code in codes) + END
    answers = MultiWrite([], chroot="", acl=b"").deserialize(data, 0)
    assert answers == codes
    assert culprit_of(answers) == (2, -103)


def test_an_unknown_answer_of_a_multi() -> None:
    with pytest.raises(ValueError, match="unknown operation 77"):
        MultiWrite([], chroot="", acl=b"").deserialize(HEADER.pack(77, 0, 0) + END, 0)


def test_a_bulk_read() -> None:
    for opcode in (GET_DATA, GET_CHILDREN):
        request = MultiRead(["/a", "/ä"], opcode)
        assert request.type == 22
        assert request.serialize() == (
            HEADER.pack(opcode, 0, -1)
            + text("/a")
            + b"\0"
            + HEADER.pack(opcode, 0, -1)
            + text("/ä")
            + b"\0"
            + END
        )


@given(st.lists(st.sampled_from(["/", "/a", "/ä", "/b/c"])))
def test_a_bulk_read_in_a_chroot_is_one_of_the_whole_paths(paths: list[str]) -> None:
    chroot = "/käfka"
    absolute = [chroot if path == "/" else chroot + path for path in paths]
    assert (
        MultiRead(paths, GET_DATA, chroot=chroot).serialize()
        == MultiRead(absolute, GET_DATA).serialize()
    )


def test_answers_of_a_bulk_read() -> None:
    stat = STAT.pack(11, 12, 3, 4, 5, 6, 7, -8, 9, 10, 13)
    data = (
        b"header"
        + HEADER.pack(4, 0, 0)
        + text("data")
        + stat
        + HEADER.pack(-1, 0, -101)
        + struct.pack(">i", -101)
        + HEADER.pack(4, 0, 0)
        + struct.pack(">i", -1)
        + stat
        + HEADER.pack(8, 0, 0)
        + struct.pack(">i", 2)
        + text("ö")
        + text("b")
        + HEADER.pack(8, 0, 0)
        + struct.pack(">i", 0)
        + END
    )
    assert MultiRead([], GET_DATA).deserialize(data, 6) == [
        ZNode(b"data", 5, 11, 12, -8),
        -101,
        ZNode(b"", 5, 11, 12, -8),
        ("b", "ö"),
        (),
    ]


def test_an_empty_answer_means_that_bulk_reads_are_unknown() -> None:
    assert MultiRead(["/"], GET_DATA).deserialize(b"0123456789abcdef", 16) is None


def test_an_unknown_answer_of_a_bulk_read() -> None:
    with pytest.raises(ValueError, match="unknown operation 77"):
        MultiRead([], GET_DATA).deserialize(HEADER.pack(77, 0, 0) + END, 0)


def test_an_answer_of_a_bulk_read_that_ends_early_or_goes_on_is_an_error() -> None:
    node = HEADER.pack(4, 0, 0) + text("data") + STAT.pack(*range(11))
    for wrong in (node + END[:-1], node + END + b"\0", node + END + bytes(4), node, END[:-2]):
        with pytest.raises((ValueError, struct.error)):
            MultiRead([], GET_DATA).deserialize(wrong, 0)


@given(st.lists(st.text("aä", max_size=30), max_size=1200), st.integers(1, 5000))
def test_paths_are_split_into_small_requests(paths: list[str], request_bytes: int) -> None:
    requests = list(in_requests(paths, request_bytes))
    assert [path for request in requests for path in request] == paths
    for request in requests:
        body = MultiRead(request, GET_DATA).serialize()
        assert 1 <= len(request) <= PATHS_PER_REQUEST
        assert len(body) - len(END) <= request_bytes or len(request) == 1


def test_watches_are_registered_when_they_are_sent() -> None:
    client = KazooClient()
    heard: list[WatchedEvent] = []
    request = SetWatches(client, ["/a", "/ö"], since_zxid=2**40, watcher=heard.append)
    assert not client._data_watchers
    assert request.serialize() == (
        struct.pack(">qi", 2**40, 2) + text("/a") + text("/ö") + struct.pack(">ii", 0, 0)
    )
    assert dict(client._data_watchers) == {"/a": {heard.append}, "/ö": {heard.append}}
    assert request.type == 101
    assert request.deserialize(b"", 0)


def test_requests_do_not_fill_the_log() -> None:
    requests = [
        MultiRead(["/a"] * 500, GET_DATA),
        MultiWrite([Delete("/a")] * 500, chroot="", acl=b""),
        SetWatches(KazooClient(), ["/a"] * 500, since_zxid=1, watcher=print),
    ]
    assert [repr(request) for request in requests] == [
        "MultiRead(500 paths)",
        "MultiWrite(500 operations)",
        "SetWatches(500 paths)",
    ]


def test_a_recursive_watch_is_added_and_removed() -> None:
    assert (AddWatch.type, RemoveWatches.type) == (106, 18)
    assert AddWatch("/kafka/ä").serialize() == text("/kafka/ä") + struct.pack(">i", 1)
    assert RemoveWatches("/kafka").serialize() == text("/kafka") + struct.pack(">i", 3)


def test_recursive_watches_are_set_again_in_one_request() -> None:
    assert SetWatches2.type == 105
    nothing = struct.pack(">i", 0)
    assert SetWatches2(["/a", "/ä"]).serialize() == (
        struct.pack(">q", 0) + nothing * 4 + struct.pack(">i", 2) + text("/a") + text("/ä")
    )


def test_an_empty_answer_to_add_watch_is_that_of_a_server_that_does_not_know_it() -> None:
    header = b"\0" * 16
    assert AddWatch("/a").deserialize(header + struct.pack(">i", 0), 16) is True
    assert AddWatch("/a").deserialize(header, 16) is False
