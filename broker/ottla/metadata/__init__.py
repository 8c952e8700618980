"""The fleet's metadata.

model        what it is: an immutable image for every version of the log, the records that change it. Pure
decisions    what may become of it: (image, command, context) → records and a reply, or an error. Pure
runtime      where that happens: the active controller, the feed of images, the sessions of brokers
"""
