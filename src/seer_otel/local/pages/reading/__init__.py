"""What the views of one trace, of changes and of accuracy read, and what they compute from it."""
