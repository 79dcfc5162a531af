"""Reassignment: partitions move to other brokers, by tools or by commands."""
