"""How the core reads and writes ZooKeeper beyond single effects."""
