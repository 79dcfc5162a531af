"""Dynamic configurations that concern the controller."""
