"""Random operations give the same results, and fire the same watches, on the real server and on the
in-memory one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regent.model.errors import ControllerMovedError
from regent.zk_data.operations import Check, Create, Delete, Operation, SetData
from sandbox import ZooKeeper
from tests.contract.zookeeper_worlds import Client, InMemoryWorld, RealWorld, World
from tests.support.examples import scaled_examples

pytestmark = [
    pytest.mark.integration,
    # kazoo's connection thread draws its jitter while hypothesis watches the global generator.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

CLIENTS = 2
_examples = itertools.count()

WATCHED = ["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/b/s-0000000000", "/b/s-0000000001"]
PATHS = st.sampled_from(WATCHED)
VERSIONS = st.sampled_from([-1, -1, -1, 0, 0, 1])
DATA = st.sampled_from([b"", b"1", b"22"])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, DATA, ephemeral=st.booleans(), exist_ok=st.booleans()),
    st.builds(Create, st.sampled_from(["/b/s-", "/a/s-"]), DATA, sequential=st.just(True)),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS, missing_ok=st.booleans()),
    st.builds(Check, PATHS, VERSIONS),
)


class Multi(NamedTuple):
    operations: list[Operation]


class Write(NamedTuple):
    operations: list[Operation]
    guard: Check


class Read(NamedTuple):
    kind: str
    paths: list[str]
    watch: bool


class Step(NamedTuple):
    client: int
    action: Multi | Write | Read


ACTIONS = st.one_of(
    st.builds(Multi, st.lists(OPERATIONS, min_size=1, max_size=4)),
    # Operations of one write must not depend on each other: no two below one top-level node.
    st.builds(
        Write,
        st.lists(OPERATIONS, max_size=2, unique_by=lambda o: o.path[:2]),
        st.builds(Check, st.sampled_from(["/", "/c"]), st.sampled_from([-1, -1, 0])),
    ),
    st.builds(
        Read,
        st.sampled_from(["data", "children", "exists"]),
        st.lists(PATHS, min_size=1, max_size=3),
        st.sampled_from([True, True, False]),
    ),
)
STEPS = st.lists(st.builds(Step, st.integers(0, CLIENTS - 1), ACTIONS), min_size=5, max_size=25)


class Both:
    """The same clients in both worlds, in one event loop."""

    def __init__(self, connect_string: str) -> None:
        self.runner = asyncio.Runner()
        self.worlds: list[World] = [InMemoryWorld(), RealWorld(connect_string)]
        self.clients = [self.runner.run(self._connect(world)) for world in self.worlds]

    async def _connect(self, world: World) -> list[Client]:
        return [await world.connect() for _ in range(CLIENTS)]

    def close(self) -> None:
        for world in self.worlds:
            self.runner.run(world.close())
        self.runner.close()


@pytest.fixture(scope="module")
def both(zookeeper_server: ZooKeeper) -> Iterator[Both]:
    made = Both(zookeeper_server.connect_string)
    yield made
    made.close()


@settings(
    scaled_examples(6),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_random_operations(both: Both, steps: list[Step]) -> None:
    root = f"/example-{next(_examples)}"
    in_memory, real = (both.runner.run(play(clients, steps, root=root)) for clients in both.clients)
    for mine, theirs in zip(in_memory, real, strict=True):
        assert mine == theirs


async def play(clients: Sequence[Client], steps: Sequence[Step], *, root: str) -> list[object]:
    """Everything that can be observed, step by step, with what differs by nature taken out."""
    owners = {client.port.session_id: index for index, client in enumerate(clients)}
    await clients[0].port.multi([Create(root + path) for path in ("", "/a", "/a/x", "/b")])
    watched = [root + path for path in WATCHED]
    await clients[0].port.exists(watched, watch=True)
    await clients[1].port.get_children(watched, watch=True)
    observed: list[object] = []
    for step in steps:
        observed.append(await act(clients[step.client], step.action, root=root, owners=owners))
        observed.append([await client.settle() for client in clients])
    one_transaction_each = not any(isinstance(step.action, Write) for step in steps)
    observed.append(await dump(clients[0], root, owners=owners, with_order=one_transaction_each))
    return observed


async def act(
    client: Client, action: Multi | Write | Read, *, root: str, owners: dict[int, int]
) -> object:
    match action:
        case Multi(operations):
            return await client.port.multi([below(root, o) for o in operations])
        case Write(operations, guard):
            try:
                return await client.port.write(
                    [below(root, o) for o in operations],
                    guard=Check((root + guard.path).rstrip("/"), guard.version),
                )
            except ControllerMovedError:
                return "moved"
        case Read("data", paths, watch):
            found = await client.port.get_data([root + p for p in paths], watch=watch)
            return [n and (n.data, n.version, owners.get(n.ephemeral_owner)) for n in found]
        case Read("children", paths, watch):
            return await client.port.get_children([root + p for p in paths], watch=watch)
        case Read(_, paths, watch):
            return await client.port.exists([root + p for p in paths], watch=watch)


def below(root: str, operation: Operation) -> Operation:
    match operation:
        case Create(path, data, ephemeral, sequential, exist_ok):
            return Create(
                root + path, data, ephemeral=ephemeral, sequential=sequential, exist_ok=exist_ok
            )
        case SetData(path, data, version):
            return SetData(root + path, data, version)
        case Delete(path, version, missing_ok):
            return Delete(root + path, version, missing_ok=missing_ok)
        case Check(path, version):
            return Check(root + path, version)


async def dump(
    client: Client, path: str, *, owners: dict[int, int], with_order: bool
) -> list[object]:
    """The tree below ``path``; transaction ids as ranks, if both worlds had the same ones."""
    paths = [path]
    for parent in paths:
        (children,) = await client.port.get_children([parent])
        paths += [f"{parent}/{name}" for name in children or ()]
    nodes = [node for node in await client.port.get_data(paths) if node is not None]
    zxids = sorted({zxid for node in nodes for zxid in (node.czxid, node.mzxid)})
    return [
        (
            path,
            node.data,
            node.version,
            owners.get(node.ephemeral_owner),
            (zxids.index(node.czxid), zxids.index(node.mzxid)) if with_order else None,
        )
        for path, node in zip(paths, nodes, strict=True)
    ]
