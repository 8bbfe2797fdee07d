"""From events to the backend: what waits, what is tried again, and HTTP."""
