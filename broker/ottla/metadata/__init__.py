"""The fleet's metadata.

model        the data: an immutable image for every version of the log, and the records that change it. Pure
decisions    the controller's decisions: (image, command, context) → records and a reply, or an error. Pure
runtime      the active controller, the feed of images, the sessions of brokers
"""
