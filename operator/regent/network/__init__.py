"""Connections to brokers. Sockets live here and nowhere else."""
