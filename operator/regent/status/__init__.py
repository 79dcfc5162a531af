"""``regent status``: who is the controller, the brokers, and the partitions by state, read-only.

Works whoever is the controller, a Regent or a broker, and even if nobody is. What only a Regent
knows (queue lengths, why it does not lead) comes from its HTTP endpoint, if there is one to be
reached.
"""
