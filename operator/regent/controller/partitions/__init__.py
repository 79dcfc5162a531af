"""What happens to partitions after their creation."""
