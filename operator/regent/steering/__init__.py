"""Client mode: a broker is the controller, and Regent asks it for what resources declare."""
