"""The fleet's metadata.

    records, snapshot       what is stored
    state, image, apply     what it means: an immutable image per version of the log
    commands, controller    what can be asked, and the decision: (image, command, context) → records, reply
    topics, assignments, placement, configs, features, brokers, partitions    the decisions, by subject

All of these are pure. `feed` (the image as this node knows it) and `active` (the controller where it leads) connect
them to the quorum.
"""
