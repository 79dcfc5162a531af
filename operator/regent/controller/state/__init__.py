"""What the controller knows: the context, the states of partitions and replicas, refusals."""
