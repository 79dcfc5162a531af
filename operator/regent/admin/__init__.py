"""Topics and their configurations, written to ZooKeeper as Kafka's ``AdminZkClient`` does."""
