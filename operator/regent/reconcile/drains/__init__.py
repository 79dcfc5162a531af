"""BrokerDrain: from what is known to what has to be done. Pure."""
