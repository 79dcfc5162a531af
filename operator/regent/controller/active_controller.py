"""The parts of a controller that exist while it is active, from one election to its resignation."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from regent.controller.config import ControllerConfig
from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_deletion_manager import TopicDeletionManager
from regent.controller.transitions.partition_state_machine import PartitionStateMachine
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine
from regent.model.log import StructuredLog


class Chance:
    """Randomness that is passed in, so that a simulation replays.

    Attributes:
        below: Returns a number from 0 up to, but not including, its argument.
        topic_id: Returns a new topic id.
    """

    def __init__(self, below: Callable[[int], int], topic_id: Callable[[], uuid.UUID]) -> None:
        self.below = below
        self.topic_id = topic_id


class ActiveController:
    """Context and state machines of one controller epoch."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        config: ControllerConfig,
        log: StructuredLog,
        chance: Chance,
    ) -> None:
        self.context = context
        self.config = config
        self.log = log
        self.chance = chance
        self.partitions = PartitionStateMachine(context, log)
        self.replicas = ReplicaStateMachine(context, log)
        self.deletions = TopicDeletionManager(
            context,
            partitions=self.partitions,
            replicas=self.replicas,
            log=log,
            waits_for_brokers=config.deletion_waits_for_brokers,
        )
