"""What can go wrong in a benchmark; the message is what its user gets to read."""


class BenchmarkError(Exception):
    """A side did not complete, or what it did was wrong: there is no figure."""
