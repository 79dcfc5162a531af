"""``regent status`` and ``regent why``: how the cluster is, and why; both only read.

Works with a Regent or a broker as the controller, and without a controller. What only a Regent
knows (queue lengths, why it does not lead) comes from its HTTP endpoint, if there is one to be
reached.
"""
