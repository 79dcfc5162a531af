"""Brokers that only listen to the controller: they answer its requests and keep them.

They run in one process of their own and are made to cost next to nothing, the same for every
controller: a request is cut out of the stream, answered and put aside; what is in it is looked at
when the clock has stopped.
"""
