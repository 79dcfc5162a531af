"""AlterUserScramCredentials: what is written for users, and what is not."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from regent.admin.commands import Accepted
from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    AlterUserScramCredentials,
    EntityResult,
    ScramDeletion,
    ScramUpsertion,
)
from regent.controller.topics.topic_commands import process_commands
from regent.model.errors import ZooKeeperUnavailableError
from regent.protocol.error_codes import (
    NONE,
    UNACCEPTABLE_CREDENTIAL,
    UNKNOWN_SERVER_ERROR,
)
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import ConfigEntity, decode_config_change, encode_entity_config
from regent.zk_data.scram_credentials import decode_scram_credential
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import denying
from tests.unit.controller.world import World

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
LOST = ZooKeeperUnavailableError("the connection broke")
SALTED = hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 4096)


def cluster() -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(1)
    active = world.fail_over()
    world.driver.performed.clear()
    return world, active


def upsertion(user: str, mechanism: str = SHA_512) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, 4096, b"salt", SALTED)


def alter(
    world: World,
    active: ActiveController,
    *upsertions: ScramUpsertion,
    deletions: tuple[ScramDeletion, ...] = (),
) -> dict[str, EntityResult]:
    command = AlterUserScramCredentials(upsertions, deletions)
    (outcome,) = world.run(process_commands(active, (command,)))
    assert isinstance(outcome, Accepted), outcome
    results: dict[str, EntityResult] = outcome.result
    return results


def notified(world: World) -> list[ConfigEntity]:
    children = [
        f"{paths.CONFIG_CHANGES}/{c}" for c in world.zookeeper.children(paths.CONFIG_CHANGES)
    ]
    nodes = [(path, world.zookeeper.get(path)) for path in children]
    return [decode_config_change(path, node.data) for path, node in nodes if node is not None]


def test_a_client_with_the_password_is_recognized() -> None:
    world, active = cluster()
    assert alter(world, active, upsertion("alice b")) == {"alice b": EntityResult()}
    node = world.node("/config/users/alice%20b")
    credential = decode_scram_credential("/p", node.data, SHA_512)
    assert credential is not None
    # RFC 5802: the stored key is the hash of what the client proves to know.
    client_key = hmac.digest(SALTED, b"Client Key", "sha512")
    assert credential.stored_key == hashlib.sha512(client_key).digest()
    assert (credential.salt, credential.iterations) == (b"salt", 4096)
    assert notified(world) == [ConfigEntity("users", "alice%20b")]


def test_what_else_a_user_has_stays() -> None:
    world, active = cluster()
    path = paths.user_config("alice")
    world.put(path, encode_entity_config({"producer_byte_rate": "1", SHA_256: "former"}))
    assert alter(
        world, active, upsertion("alice"), deletions=(ScramDeletion("alice", SHA_256),)
    ) == {"alice": EntityResult()}
    node = world.node(path)
    assert b"producer_byte_rate" in node.data
    assert SHA_512.encode() in node.data
    assert SHA_256.encode() not in node.data


@pytest.mark.parametrize("name", [".", "..", "a" * 1_001])
def test_a_user_that_no_znode_can_be_named_after_keeps_no_other_from_being_changed(
    name: str,
) -> None:
    """A path above ZooKeeper's limit closes the connection, and is sent again on the next one."""
    world, active = cluster()
    results = alter(world, active, upsertion("alice"), deletions=(ScramDeletion(name, SHA_256),))
    assert results.pop("alice") == EntityResult()
    assert results[name].error_code == UNACCEPTABLE_CREDENTIAL
    assert alter(world, active, upsertion(name))[name].error_code == UNACCEPTABLE_CREDENTIAL
    assert notified(world) == [ConfigEntity("users", "alice")]


def test_a_user_that_others_change_at_the_same_moment_is_read_again() -> None:
    world, active = cluster()
    path = paths.user_config("alice")
    world.put(path, encode_entity_config({"a": "1"}))
    world.driver.before = once(
        zk_effects.Multi, lambda: world.put(path, encode_entity_config({"b": "2"}))
    )
    assert alter(world, active, upsertion("alice"), upsertion("bob")) == {
        "alice": EntityResult(),
        "bob": EntityResult(),
    }
    node = world.node(path)
    assert b'"b"' in node.data
    assert len(notified(world)) == 2


def test_an_answer_that_is_lost_is_found_out() -> None:
    world, active = cluster()
    path = paths.user_config("alice")
    world.put(path, encode_entity_config({SHA_256: "former"}))
    world.driver.after = once(zk_effects.Multi, raising(LOST))
    deletion = ScramDeletion("alice", SHA_256)
    assert alter(world, active, deletions=(deletion,)) == {"alice": EntityResult()}
    assert len(notified(world)) == 1


def test_a_configuration_that_cannot_be_read_is_not_replaced() -> None:
    world, active = cluster()
    path = paths.user_config("alice")
    world.put(path, b"broken")
    results = alter(world, active, upsertion("alice"), upsertion("bob"))
    assert {user: each.error_code for user, each in results.items()} == {
        "alice": UNKNOWN_SERVER_ERROR,
        "bob": NONE,
    }
    assert world.node(path).data == b"broken"


def test_a_user_whose_configuration_may_not_be_written_keeps_no_other_from_being_changed() -> None:
    world, active = cluster()
    world.driver.before = denying(paths.user_config("eve"), zk_effects.Multi)
    results = alter(world, active, upsertion("alice"), upsertion("eve"), upsertion("zoe"))
    assert [results[user].error_code for user in ("alice", "eve", "zoe")] == [
        NONE,
        UNKNOWN_SERVER_ERROR,
        NONE,
    ]
    assert "NOAUTH for /config/users/eve" in (results["eve"].message or "")
    assert world.exists(paths.user_config("zoe"))
    assert not world.exists(paths.user_config("eve"))


def test_a_password_is_never_shown() -> None:
    shown = repr(AlterUserScramCredentials((upsertion("alice"),)))
    assert "password withheld" in shown
    assert repr(SALTED) not in shown
