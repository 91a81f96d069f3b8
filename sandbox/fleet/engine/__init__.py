"""The demo's engine stand-ins: prefill, decode and router. Standard library only, python 3.9 or newer."""
