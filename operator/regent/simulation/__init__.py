"""A cluster in memory, and the real controller core on top of it."""
