"""Measuring retrieval: what labels say about it, and what an evaluator says."""
