"""Sockets of this process: where it listens, how it accepts, how many files may be open."""
