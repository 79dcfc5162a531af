"""All flows by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.matrix.flow import Flow
from tests.matrix.flows.chance import HAND_OVERS
from tests.matrix.flows.deletion import DELETION
from tests.matrix.flows.elections import PREFERRED_ELECTION, UNCLEAN_ELECTION
from tests.matrix.flows.failures import BOUNCE, CRASH, LOG_DIRECTORY
from tests.matrix.flows.hand_backs import HAND_BACKS
from tests.matrix.flows.reassignment import CANCEL, REASSIGN
from tests.matrix.flows.replica_endings import REPLICA_ENDINGS
from tests.matrix.flows.take_overs import TAKE_OVERS

FLOWS: Final[Mapping[str, Flow]] = {
    flow.name: flow
    for flow in (
        REASSIGN,
        CANCEL,
        PREFERRED_ELECTION,
        UNCLEAN_ELECTION,
        DELETION,
        LOG_DIRECTORY,
        CRASH,
        BOUNCE,
        *TAKE_OVERS,
        *HAND_BACKS,
        HAND_OVERS,
        REPLICA_ENDINGS,
    )
}
