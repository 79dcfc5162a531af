"""Files of people: read within bounds, and strictly."""
