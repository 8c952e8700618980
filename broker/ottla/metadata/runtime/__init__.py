"""Metadata at work on a node.

`active` decides and proposes where the node leads the quorum; `feed` notifies subscribers of every image; `relay`
carries both between the node's two loops; `watch` and `rounds` see to sessions and duties.
"""
