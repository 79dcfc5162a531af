"""Topics: creation, growth, deletion, configuration; from tools and from custom resources."""
