"""The log of one partition.

log, writing, reading      one object in three layers: what removes segments, appends, reads
segments, segment          all segments; one of them; segment_files: its files
index, aborted_index, epochs, snapshots    the files beside a .log, in Kafka's formats
append_checks              checks of a batch before it is appended
durability                 the recovery point, and what the next flush has to write
recovery                   opening a log after a crash: verifies segments, rebuilds their indexes
replay                     rebuilds producers from a snapshot and the batches after it
truncation, retention, replace    removing the end, the beginning; swapping in compacted segments
scan, timestamps           walking over batches; offsets by time
"""
