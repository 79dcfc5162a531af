"""What must hold after every step.

Every transaction that changes ZooKeeper, every batch that a controller sends, every request that a
broker obeys and every end of an event is checked when it happens.
"""
