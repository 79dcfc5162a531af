"""Reads and writes of ``ZooKeeperPort``, the same for the real server and the in-memory one."""

from __future__ import annotations

import pytest

from regent.model.errors import ControllerMovedError
from regent.zk_data.operations import (
    DEFAULT_JUTE_MAX_BUFFER,
    Check,
    Create,
    Delete,
    Operation,
    SessionState,
    SetData,
    Written,
    ZkError,
    ZNode,
)
from tests.contract.zookeeper_worlds import Client, World

GUARD = Check("/guard", 0)
ROLLED_BACK = ZkError.ROLLED_BACK


@pytest.fixture
async def client(world: World) -> Client:
    """A client in a tree with a guard, a node with data, and a parent with two children."""
    client = await world.connect()
    await client.port.multi(
        [
            Create("/guard"),
            Create("/node", b"data"),
            Create("/parent"),
            Create("/parent/b"),
            Create("/parent/a", b"child"),
            Create("/ephemeral", ephemeral=True),
        ]
    )
    return client


async def node(client: Client, path: str) -> ZNode:
    (found,) = await client.port.get_data([path])
    assert found is not None
    return found


async def test_data_comes_in_the_order_of_the_paths(client: Client) -> None:
    paths = ["/parent/a", "/missing", "/node", "/parent", "/node", "/missing/child"]
    found = await client.port.get_data(paths)
    assert [n and n.data for n in found] == [b"child", None, b"data", b"", b"data", None]


async def test_the_root_can_be_read(client: Client) -> None:
    (root,) = await client.port.get_data(["/"])
    assert root is not None
    assert await client.port.exists(["/"]) == [True]
    assert await client.port.get_children(["/"]) == [("ephemeral", "guard", "node", "parent")]


async def test_nothing_asked_nothing_answered(client: Client) -> None:
    for watch in (False, True):
        assert await client.port.get_data([], watch=watch) == []
        assert await client.port.get_children([], watch=watch) == []
        assert await client.port.exists([], watch=watch) == []
    assert await client.port.multi([]) == []
    assert await client.port.write([], guard=Check("/missing", 7)) == []


@pytest.mark.parametrize("watch", [False, True])
async def test_children_are_sorted(client: Client, watch: bool) -> None:
    paths = ["/parent", "/missing", "/node"]
    assert await client.port.get_children(paths, watch=watch) == [("a", "b"), None, ()]


@pytest.mark.parametrize("watch", [False, True])
async def test_data_with_and_without_a_watch_is_the_same(client: Client, watch: bool) -> None:
    paths = ["/node", "/missing", "/parent", "/ephemeral"]
    assert await client.port.get_data(paths, watch=watch) == await client.port.get_data(paths)


async def test_names_beyond_ascii(client: Client) -> None:
    assert await client.port.multi([Create("/parent/ä€", b"1")]) == [Written(0, "/parent/ä€")]
    assert await client.port.get_children(["/parent"]) == [("a", "b", "ä€")]
    assert (await node(client, "/parent/ä€")).data == b"1"


async def test_versions_and_transaction_ids(client: Client) -> None:
    created = await node(client, "/node")
    assert created.version == 0
    assert created.czxid == created.mzxid == (await node(client, "/parent")).czxid
    assert await client.port.multi([SetData("/node", b"1")]) == [Written(1)]
    assert await client.port.multi([SetData("/node", b"2", 1)]) == [Written(2)]
    changed = await node(client, "/node")
    assert (changed.data, changed.version, changed.czxid) == (b"2", 2, created.czxid)
    assert changed.mzxid > created.mzxid
    await client.port.multi([Delete("/node")])
    await client.port.multi([Create("/node")])
    recreated = await node(client, "/node")
    assert recreated.version == 0
    assert recreated.czxid > changed.mzxid


async def test_the_owner_of_an_ephemeral_node(client: Client) -> None:
    assert client.port.session_id != 0
    assert (await node(client, "/ephemeral")).ephemeral_owner == client.port.session_id
    assert (await node(client, "/node")).ephemeral_owner == 0


async def test_sequential_nodes_count_the_children_ever_created(client: Client) -> None:
    sequential = Create("/parent/s-", b"x", sequential=True)
    assert await client.port.multi([sequential, sequential]) == [
        Written(0, "/parent/s-0000000002"),
        Written(0, "/parent/s-0000000003"),
    ]
    await client.port.multi([Delete("/parent/s-0000000003"), Delete("/parent/a")])
    assert await client.port.write([sequential], guard=GUARD) == [
        Written(0, "/parent/s-0000000004")
    ]
    failed = await client.port.multi([sequential, Check("/missing", 0)])
    assert failed == [ROLLED_BACK, ZkError.NO_NODE]
    assert await client.port.multi([sequential]) == [Written(0, "/parent/s-0000000005")]


async def test_a_multi_may_have_nothing_but_checks(client: Client) -> None:
    """It settles who is the controller."""
    checks = [Check("/guard", 0), Check("/ephemeral", -1)]
    assert await client.port.multi(checks) == [Written(-1), Written(-1)]
    await client.port.multi([SetData("/guard", b"another")])
    assert await client.port.multi(checks) == [ZkError.BAD_VERSION, ROLLED_BACK]
    await client.port.multi([Delete("/ephemeral")])
    checks = [Check("/guard", 1), Check("/ephemeral", -1)]
    assert await client.port.multi(checks) == [ROLLED_BACK, ZkError.NO_NODE]


async def test_operations_of_a_multi_see_each_other(client: Client) -> None:
    results = await client.port.multi(
        [
            Create("/new", b"0"),
            Create("/new/child"),
            SetData("/new", b"1", 0),
            Check("/new", 1),
            Delete("/new/child", 0),
            Check("/new", -1),
        ]
    )
    assert results == [
        Written(0, "/new"),
        Written(0, "/new/child"),
        Written(1),
        Written(-1),
        Written(-1),
        Written(-1),
    ]
    found = await node(client, "/new")
    assert (found.data, found.version) == (b"1", 1)
    assert found.czxid == found.mzxid


FAILING: list[tuple[Operation, ZkError]] = [
    (Create("/node"), ZkError.NODE_EXISTS),
    (Create("/node", exist_ok=True), ZkError.NODE_EXISTS),
    (Create("/missing/child"), ZkError.NO_NODE),
    (Create("/ephemeral/child"), ZkError.NO_CHILDREN_FOR_EPHEMERALS),
    (SetData("/missing", b""), ZkError.NO_NODE),
    (SetData("/missing", b"", 3), ZkError.NO_NODE),
    (SetData("/node", b"", 3), ZkError.BAD_VERSION),
    (Delete("/missing"), ZkError.NO_NODE),
    (Delete("/missing", missing_ok=True), ZkError.NO_NODE),
    (Delete("/missing/child"), ZkError.NO_NODE),
    (Delete("/node", 3), ZkError.BAD_VERSION),
    (Delete("/parent"), ZkError.NOT_EMPTY),
    (Delete("/parent", 3), ZkError.BAD_VERSION),
    (Check("/missing", -1), ZkError.NO_NODE),
    (Check("/node", 3), ZkError.BAD_VERSION),
]


@pytest.mark.parametrize(("operation", "error"), FAILING)
async def test_failing_operation_rolls_the_others_back(
    client: Client, operation: Operation, error: ZkError
) -> None:
    before = await client.port.get_data(["/node", "/parent", "/parent/a", "/new"])
    operations = [SetData("/guard", b"changed"), operation, Create("/new")]
    assert await client.port.multi(operations) == [ROLLED_BACK, error, ROLLED_BACK]
    assert await client.port.get_data(["/node", "/parent", "/parent/a", "/new"]) == before


async def test_each_write_has_its_own_result(client: Client) -> None:
    operations: list[Operation] = [
        SetData("/node", b"new", 0),
        SetData("/missing", b"x"),
        Create("/parent/c", b"c"),
        Create("/parent/a"),
        Create("/parent/b", exist_ok=True),
        Create("/parent/d", exist_ok=True),
        Delete("/gone"),
        Delete("/gone", missing_ok=True),
        Delete("/ephemeral"),
        Check("/parent", 0),
        Check("/parent", 1),
    ]
    assert await client.port.write(operations, guard=GUARD) == [
        Written(1),
        ZkError.NO_NODE,
        Written(0, "/parent/c"),
        ZkError.NODE_EXISTS,
        Written(-1),
        Written(0, "/parent/d"),
        ZkError.NO_NODE,
        Written(-1),
        Written(-1),
        Written(-1),
        ZkError.BAD_VERSION,
    ]
    assert await client.port.get_children(["/parent"]) == [("a", "b", "c", "d")]
    assert (await node(client, "/node")).data == b"new"
    assert (await node(client, "/parent/a")).data == b"child"


@pytest.mark.parametrize("guard", [Check("/guard", 1), Check("/missing", 0)])
async def test_failing_guard_prevents_writes(client: Client, guard: Check) -> None:
    with pytest.raises(ControllerMovedError):
        await client.port.write([SetData("/node", b"x"), Delete("/missing")], guard=guard)
    assert (await node(client, "/node")).data == b"data"


async def test_the_guard_follows_its_node(client: Client) -> None:
    await client.port.multi([SetData("/guard", b"")])
    with pytest.raises(ControllerMovedError):
        await client.port.write([SetData("/node", b"x")], guard=GUARD)
    assert await client.port.write([SetData("/node", b"x")], guard=Check("/guard", 1)) == [
        Written(1)
    ]


async def test_the_existence_of_many_nodes(client: Client) -> None:
    paths = [f"/parent/n{i}" for i in range(1200)]
    await client.port.write([Create(path, b"0") for path in paths[::3]], guard=GUARD)
    expected = [i % 3 == 0 for i in range(len(paths))]
    assert await client.port.exists(paths) == expected


async def test_many_writes_some_of_which_conflict(client: Client) -> None:
    count = 2500
    paths = [f"/parent/n{i}" for i in range(count)]
    created = await client.port.write([Create(path, b"0") for path in paths], guard=GUARD)
    assert created == [Written(0, path) for path in paths]
    stale = {3, 4, 5, 700, 1100, 1101, 1900, 2499}
    operations = [SetData(path, b"1", 5 if i in stale else 0) for i, path in enumerate(paths)]
    results = await client.port.write(operations, guard=GUARD)
    assert results == [ZkError.BAD_VERSION if i in stale else Written(1) for i in range(count)]
    found = await client.port.get_data(paths)
    assert [n and n.data for n in found] == [b"0" if i in stale else b"1" for i in range(count)]


async def test_undivided_writes_are_undone_with_a_conflict(client: Client) -> None:
    count = 2500
    paths = [f"/parent/n{i}" for i in range(count)]
    await client.port.write([Create(path, b"0") for path in paths], guard=GUARD)
    operations = [SetData(path, b"1", 5 if i == 700 else 0) for i, path in enumerate(paths)]
    results = await client.port.write(operations, guard=GUARD, divides=False)
    assert results[700] is ZkError.BAD_VERSION
    assert results[699] is ROLLED_BACK
    assert results[-1] == Written(1)
    found = await client.port.get_data(paths)
    assert [n and n.data for n in found] == [
        b"1" if result == Written(1) else b"0" for result in results
    ]
    assert set(results) == {Written(1), ROLLED_BACK, ZkError.BAD_VERSION}


async def test_undivided_writes_may_follow_each_other(client: Client) -> None:
    operations = [SetData("/node", b"x", version) for version in range(2500)]
    results = await client.port.write(operations, guard=GUARD, divides=False)
    assert results == [Written(version + 1) for version in range(2500)]


@pytest.mark.parametrize("before", [998, 999])
async def test_following_writes_overwrite_nobody(client: Client, before: int) -> None:
    """However many others are written with them: the second one has the version that somebody
    else's write has left."""
    await client.port.multi([SetData("/node", b"theirs", 0)])
    others: list[Operation] = [Create(f"/parent/n{i}", b"0") for i in range(before)]
    ours = [SetData("/node", b"ours", version) for version in range(3)]
    results = await client.port.write([*others, *ours], guard=GUARD, divides=False)
    assert results[before:] == [ZkError.BAD_VERSION, ROLLED_BACK, ROLLED_BACK]
    (node,) = await client.port.get_data(["/node"])
    assert node is not None
    assert (node.data, node.version) == (b"theirs", 1)


async def test_a_write_that_is_not_divided_is_fenced(client: Client) -> None:
    with pytest.raises(ControllerMovedError):
        await client.port.write([SetData("/missing", b"")], guard=Check("/guard", 1), divides=False)


async def test_writes_all_of_which_conflict(client: Client) -> None:
    operations: list[Operation] = [SetData("/node", b"x", 9), Delete("/missing")] * 60
    results = await client.port.write(operations, guard=GUARD)
    assert results == [ZkError.BAD_VERSION, ZkError.NO_NODE] * 60


async def test_large_data(client: Client) -> None:
    sizes = {"/node": 300_000, "/parent": 300_000, "/parent/a": 900_000}
    operations = [SetData(path, b"x" * size) for path, size in sizes.items()]
    assert await client.port.write(operations, guard=GUARD) == [Written(1)] * 3
    found = await client.port.get_data(list(sizes))
    assert [n and len(n.data) for n in found] == list(sizes.values())


TOO_MUCH = b"x" * (DEFAULT_JUTE_MAX_BUFFER + 1)
NEARLY_TOO_MUCH = b"x" * (DEFAULT_JUTE_MAX_BUFFER - 1_000)


class TestSizes:
    """A server ends the connection over a request that is too large, at each attempt."""

    async def test_a_transaction_that_is_too_large_is_refused(self, client: Client) -> None:
        results = await client.port.multi([GUARD, Create("/large", TOO_MUCH), Create("/small")])
        assert results == [ROLLED_BACK, ZkError.TOO_LARGE, ROLLED_BACK]
        half = b"x" * (len(TOO_MUCH) // 2)
        together = [Create("/a", half), Create("/b", half + b"x"), Create("/c", b"")]
        assert await client.port.multi(together) == [ROLLED_BACK, ZkError.TOO_LARGE, ROLLED_BACK]
        assert await client.port.exists(["/large", "/small", "/a"]) == [False] * 3

    async def test_too_large_write_spares_others(self, client: Client) -> None:
        half = b"x" * (len(TOO_MUCH) // 2)
        operations: list[Operation] = [
            *(Create(f"/half-{i}", half) for i in range(3)),
            SetData("/node", TOO_MUCH),
            Create("/last"),
        ]
        results = await client.port.write(operations, guard=GUARD)
        assert [result is ZkError.TOO_LARGE for result in results] == [False] * 3 + [True, False]
        assert (await node(client, "/node")).data == b"data"
        assert await client.port.exists(["/half-2", "/last"]) == [True, True]

    async def test_the_session_survives_what_just_fits(self, client: Client) -> None:
        before = client.port.session_id
        await client.port.multi([GUARD, SetData("/node", NEARLY_TOO_MUCH)])
        assert (await node(client, "/node")).data == NEARLY_TOO_MUCH
        assert client.port.session_id == before
        assert not set(client.states) & {SessionState.SUSPENDED, SessionState.RECONNECTED}
