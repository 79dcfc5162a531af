"""``regent status``: who is the controller, the brokers, and the partitions by state, read-only.

Works with a Regent or a broker as the controller, and without a controller. What only a Regent
knows (queue lengths, why it does not lead) comes from its HTTP endpoint, if there is one to be
reached.
"""
