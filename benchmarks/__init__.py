"""Benchmarks: Regent and Kafka's own controller side by side, over the same real ZooKeeper.

`python -m benchmarks list` names them; `python -m benchmarks NAME` runs one. Each ends with one
line `NAME: N.N times Kafka's speed`.
"""
