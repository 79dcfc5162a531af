"""What brokers ask the controller: a client of it for stub brokers.

It has codecs of its own, so that no answer is read by the code that has written it. It runs in the
benchmark's process.
"""
