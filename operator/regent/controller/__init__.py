"""The controller core: every rule of a ZooKeeper-mode KafkaController, without I/O.

Modules carry the names of Kafka's classes. See DESIGN.md beside this file for the theory of
operation.
"""
