"""The ZooKeeper shell: a session over kazoo, the controller's port on it, and leader election."""
