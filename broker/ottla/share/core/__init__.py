"""The decisions of share groups: acquiring and acknowledging records, and the kept state. Pure.

`share.host` and `share.shard` act; the docstring of `share` lists the modules.
"""
