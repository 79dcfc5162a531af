"""Evictions of brokers' pods wait for a BrokerDrain (docs/broker-drain.md)."""
