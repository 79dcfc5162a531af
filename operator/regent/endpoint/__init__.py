"""What brokers and clients ask of the controller: one module per API, see ``docs/endpoint.md``."""
