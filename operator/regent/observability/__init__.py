"""Logging and metrics of the running process."""
