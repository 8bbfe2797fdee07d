"""Has events judged, in a process of its own, and makes figures of what an evaluator says."""
