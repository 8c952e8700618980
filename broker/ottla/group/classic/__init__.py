"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup. Pure.

`group` is the automaton, `states` its table; `joining`, `rebalancing`, `syncing`, `leaving`, `static` its events.
"""
