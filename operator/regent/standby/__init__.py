"""What a standby adds to its copy of the cluster, so that it takes over quickly."""
