"""What a planner is given and what it answers. Pure: planning itself is another package's."""
