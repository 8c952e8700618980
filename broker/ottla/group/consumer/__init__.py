"""Consumer groups (KIP-848): decided by `heartbeat`, advanced by `advance`, assigned by `assignors`. Pure.

`state` is what the log says; `migration` and `classic_members` are the way from the classic protocol and back.
"""
