"""The threads of the process that follow a cluster, each with an event loop: the controller, and
client mode in place of it."""
