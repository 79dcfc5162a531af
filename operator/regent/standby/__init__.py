"""Preparations that a standby adds to its copy of the cluster, for a quick failover."""
