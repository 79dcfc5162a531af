"""Znodes: every path and every JSON codec of the stock Kafka layout, as pure functions."""
