"""Observe, preview and apply: one file a kind of host. `systemd.py` is the example to copy."""
