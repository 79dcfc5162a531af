"""Regent: a Kubernetes operator that is the Kafka controller of a ZooKeeper-mode cluster."""
