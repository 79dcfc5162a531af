"""What has to be done for a KafkaTopic."""
