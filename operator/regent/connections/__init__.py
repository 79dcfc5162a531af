"""How ZooKeeper and the brokers are reached, by the settings of the process."""
