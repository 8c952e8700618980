"""The image of the fleet's metadata and the records it is made of. Pure.

`image` is immutable, over `tables` of `state`; `apply` makes the next one from records, `changes` lists what differs,
`snapshot` and `records` are the bytes.
"""
