"""Producer ids of transactional and idempotent producers."""
