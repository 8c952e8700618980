"""Metadata at work on a node.

active         decides and proposes on the node that leads the quorum
feed           the current image; notifies subscribers of every change
relay          carries images and commands between the node's two loops
watch          sessions of brokers: heartbeats, fencing, controlled shutdown
rounds         runs periodic duties while this node leads
"""
