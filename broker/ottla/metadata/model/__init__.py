"""The image of the fleet's metadata and the records it is made of. Pure.

`image` is immutable, `state` its values; `apply` makes the next one from records, `changes` tells what differs,
`snapshot` and `records` are the bytes.
"""
