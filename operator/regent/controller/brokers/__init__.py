"""Brokers come, go, change, and answer."""
