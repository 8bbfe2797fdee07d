"""The span attributes that tell us what no instrumentor knows. Pure.

Users set them on their own spans, or the `using_*` blocks write them on every span started inside. The names
are public API.
"""

from __future__ import annotations

TASK = "seer.task"
"""Text: the question that the user asked."""
SUBQUERY = "seer.subquery"
"""Text: what this retrieval asked, where that is not the task."""
IS_FINAL_CONTEXT = "seer.is_final_context"
"""Boolean, or the text true or false: whether the model answered from this context."""
SAMPLE_RATE = "seer.sample_rate"
"""Number from 0 to 1: the share of traces like this one to keep."""
METADATA_PREFIX = "seer.metadata."
"""What follows it is the key of one metadata value."""
GROUND_TRUTH = "seer.ground_truth"
"""A JSON object as text with `gold_doc_ids` and perhaps `answer`, for users who set it by hand."""
GROUND_TRUTH_IDS = "seer.ground_truth.gold_doc_ids"
"""List of text: the ids of the documents that are relevant."""
GROUND_TRUTH_ANSWER = "seer.ground_truth.answer"
"""Text: the right answer."""
