"""Wire format of the requests between controller and brokers: pure, no sockets."""
