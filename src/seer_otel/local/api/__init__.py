"""The local backend over HTTP, below its pages: what it takes and what it answers."""
