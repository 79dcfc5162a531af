"""Where others ask this process, by its settings: brokers and clients, the API server, drivers of
planning jobs."""
