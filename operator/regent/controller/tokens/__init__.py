"""Delegation tokens end."""
