from __future__ import annotations

import pytest
from kazoo import exceptions as kazoo

from regent.model.errors import SessionExpiredError
from regent.zk_data.operations import ZkError
from regent.zookeeper.errors import EXPECTED, Failure, code_of, failure_of, unexpected
from regent.zookeeper.generation import is_repeatable


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (kazoo.ConnectionLoss(), Failure.REPEATABLE),
        (kazoo.OperationTimeoutError(), Failure.REPEATABLE),
        (kazoo.SessionMovedError(), Failure.REPEATABLE),
        (kazoo.RequestTimeoutError(), Failure.REPEATABLE),
        (kazoo.ThrottledOpError(), Failure.REPEATABLE),
        (kazoo.ConnectionDropped(), Failure.REPEATABLE),
        (kazoo.SessionExpiredError(), Failure.SESSION_OVER),
        (kazoo.ConnectionClosedError(), Failure.SESSION_OVER),
        (kazoo.AuthFailedError(), Failure.SESSION_OVER),
        (kazoo.NoNodeError(), Failure.ANSWER),
        (kazoo.NoAuthError(), Failure.ANSWER),
        (kazoo.UnimplementedError(), Failure.ANSWER),
    ],
)
def test_what_a_failure_means(error: Exception, failure: Failure) -> None:
    assert failure_of(error) is failure


def test_a_bug_is_no_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        failure_of(ZeroDivisionError())


def test_a_session_that_is_over_is_an_error_of_the_project() -> None:
    with pytest.raises(SessionExpiredError):
        is_repeatable(kazoo.ConnectionClosedError())
    assert is_repeatable(kazoo.ConnectionLoss())
    assert not is_repeatable(kazoo.NoAuthError())


def test_expected_codes_are_those_of_kazoo_s_exceptions() -> None:
    for error, expected in [
        (kazoo.NoNodeError, ZkError.NO_NODE),
        (kazoo.BadVersionError, ZkError.BAD_VERSION),
        (kazoo.NodeExistsError, ZkError.NODE_EXISTS),
        (kazoo.NotEmptyError, ZkError.NOT_EMPTY),
        (kazoo.NoChildrenForEphemeralsError, ZkError.NO_CHILDREN_FOR_EPHEMERALS),
    ]:
        assert EXPECTED[code_of(error())] is expected


def test_unexpected_answers_name_the_code_and_the_path() -> None:
    assert str(unexpected(-102, "/a")) == "ZooKeeper answered NOAUTH for /a"
    assert str(unexpected(-110, "/a")) == "ZooKeeper answered NODEEXISTS for /a"
    assert str(unexpected(-999, "")) == "ZooKeeper answered error -999"
