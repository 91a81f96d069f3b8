"""What a fleet file may say: one file a noun, which reads YAML nodes into entries and tells errors with their lines.

`problems` collects errors, `nodes` makes YAML nodes of text, `values` and `table` read them, `links` compares entries.
"""
