"""The parts of a controller that exist while it is active, from one election to its resignation."""

from __future__ import annotations

from regent.admin.topic_admin import Chance, TopicAdmin
from regent.controller.config import ControllerConfig
from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_deletion_manager import TopicDeletionManager
from regent.controller.transitions.partition_state_machine import PartitionStateMachine
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine
from regent.model.log import StructuredLog


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


def topic_admin(active: ActiveController) -> TopicAdmin:
    """Return the present knowledge of a controller for writing topics."""
    context, config = active.context, active.config
    return TopicAdmin(
        cluster=context.cluster,
        broker_facts=context.broker_facts,
        guard=epoch_guard(context),
        inter_broker_protocol=context.cluster.inter_broker_protocol,
        live=context.live_broker_ids,
        cordoned=context.cordoned_brokers,
        deleting=context.topics_to_be_deleted,
        throttled=context.throttles.topics,
        default_replication_factor=config.default_replication_factor,
        jute_max_buffer=config.jute_max_buffer,
        chance=active.chance,
        log=active.log,
    )
