"""The state machines of partitions and replicas, elections of leaders, requests that follow."""
