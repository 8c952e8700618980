"""The metadata quorum.

    messages, log, progress, quorum, role     values and their arithmetic
    core, elections, leading, following       the automaton: events in, effects out
    frames                                    entries and snapshots as bytes

All of these are pure. `store` keeps the promises on disk, `driver` performs the effects.
"""
