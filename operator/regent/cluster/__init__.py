"""The cluster as ZooKeeper has it: a copy with the versions of its nodes, kept up to date."""
