"""What live brokers have said about themselves by now."""

from __future__ import annotations

from regent.controller.effects import ReportedFacts
from regent.controller.state.context import ControllerContext
from regent.model.topic_config import BrokerFacts


async def facts_of_live_brokers(context: ControllerContext) -> dict[int, BrokerFacts]:
    """What live brokers have said, by broker, with what they have not answered yet: in the first
    moments of a term the event waits behind the failover, and behind who asks for a deletion. That
    event is what all else goes by."""
    brokers, facts = context.cluster.brokers, context.broker_facts
    known = {broker_id: facts.of(broker) for broker_id, broker in brokers.items()}
    unknown = [brokers[broker_id] for broker_id, each in known.items() if not each.has_answered]
    if unknown:
        known |= {each.broker_id: each for each in await ReportedFacts(unknown)}
    return known
