"""The ZooKeeper client. kazoo is used here and nowhere else."""
