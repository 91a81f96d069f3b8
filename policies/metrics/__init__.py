"""What was measured: scrapes and their samples, queries on them, and readings with the place that they come from."""
