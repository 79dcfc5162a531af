"""Rebalance planning on Spark. Imports nothing of ``regent``: it runs in an image of its own."""
