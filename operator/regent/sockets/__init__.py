"""Sockets of this process: where it listens, how it accepts, what asyncio keeps, how many files may
be open."""
