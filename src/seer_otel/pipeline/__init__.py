"""From spans to events: the queue and its worker, the open traces, what happens to each that is complete."""
