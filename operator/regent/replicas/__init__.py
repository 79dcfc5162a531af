"""What the replicas of a Regent know of each other, and say to each other."""
