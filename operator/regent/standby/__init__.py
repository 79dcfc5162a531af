"""The cluster as a standby keeps it: a copy of ZooKeeper that watches keep up to date."""
