"""The thread as a third copy of the ledger: read it back, draw it again, compare."""
