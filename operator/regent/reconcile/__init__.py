"""What has to be done for a custom resource: pure functions of resource, cluster view and time."""
