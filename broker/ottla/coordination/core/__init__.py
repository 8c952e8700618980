"""Pure parts of coordination.

effects        what state machines return: Reply, Write, Wake, Send, Compute
partitioning   which partition of an internal topic keeps a key
records        keys and values that begin with their version
"""
