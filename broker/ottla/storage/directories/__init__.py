"""The log dirs of a broker. A failed dir takes its own logs offline and nothing else.

directories    all log dirs: creating, deleting and reconciling logs, failures
directory      one log dir: its logs, its checkpoints, its lock
loading        opens the logs of a dir in several threads
meta           meta.properties, partition.metadata, .lock
checkpoint     Kafka's offset checkpoint files
files          a bounded number of open files
"""
