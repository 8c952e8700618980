"""gRPC between nodes: one server on each loop of a node, one channel per loop and peer.

On the control loop: quorum, control. On the data loop: replication, questions between brokers.
"""

import os

# Read by gRPC when it is first imported. Its older poller hands a message to the event loop with fewer threads between
# than EventEngine does: a record that three brokers acknowledge takes 1.15 ms instead of 1.37.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
# A line per failed handshake would let any stranger fill the log; whoever fails to get in is told why at that end.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
