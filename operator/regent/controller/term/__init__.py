"""The life of a controller: election, failover, reconnection, and what speaks against being it."""
