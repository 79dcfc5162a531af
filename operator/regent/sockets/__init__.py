"""Sockets on which this process is reached: opened, and connections accepted and refused."""
