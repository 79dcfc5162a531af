"""Runs the controller core: its event queue, the interpretation of its effects, its timers."""
