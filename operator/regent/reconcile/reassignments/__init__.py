"""PartitionReassignments: plans that are pinned by their hash, and their execution in batches."""
