"""Connections to brokers, clients and other replicas over Kafka's protocol and heartbeats."""
