"""Facts that brokers report about themselves."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView, ReportedFacts
from regent.controller.state.context import ControllerContext
from regent.model.topic_config import BrokerFacts


async def process_broker_facts(
    active: ActiveController, broker_epoch: int, facts: BrokerFacts
) -> None:
    """A broker has said what it runs: commands that waited for it may succeed now."""
    active.context.broker_facts.learn(broker_epoch, facts)
    await PublishView(frozenset())


async def facts_of_live_brokers(context: ControllerContext) -> dict[int, BrokerFacts]:
    """Return the facts that live brokers have reported, by broker. Some have no facts yet.

    In the first moments of a term the event with their answers waits behind the failover. So the
    channels are asked, too. All else goes by the event.
    """
    brokers, facts = context.cluster.brokers, context.broker_facts
    known = {broker_id: facts.of(broker) for broker_id, broker in brokers.items()}
    unknown = [brokers[broker_id] for broker_id, each in known.items() if not each.has_answered]
    if unknown:
        known |= {each.broker_id: each for each in await ReportedFacts(unknown)}
    return known
