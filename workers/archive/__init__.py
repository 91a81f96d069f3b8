"""A second copy of the ledger: JSON lines in files, one a day, each tied to the one before by a hash.

`YYYY-MM-DD.jsonl` begins with an anchor, which names the last entry of the file before, and goes on with entries as
they are stored. The day is that of the entry (UTC) and never goes back, so that one ledger gives one set of files,
whenever they are written.
"""
