"""Plain values of a Kafka cluster. A leaf: imports nothing of the project.

Values that exist once per partition are :class:`msgspec.Struct` with ``gc=False``: a cluster of a
hundred thousand partitions keeps a million of them alive, and the cyclic collector must never have
to walk them. None of them can take part in a reference cycle.
"""
