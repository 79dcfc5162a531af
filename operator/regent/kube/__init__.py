"""Kubernetes: watch streams, work queue, status. kopf and the API client live nowhere else."""
