"""Judging an A/B: is the comparison valid, and if so what do its runs show. Start at `policies.abtest.judge`."""
