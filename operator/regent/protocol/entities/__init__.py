"""Requests between controller and brokers, and their responses, as entities of kio.

kio's newest releases no longer carry the messages of the ZooKeeper-mode controller. They are
declared here from Kafka's public message definitions, in the form kio's readers and writers work
on. These entities are the *reference* codec: the tests hold the encoders of the hot path to them,
stub brokers read requests with them, and rare messages are served with them directly.
"""
