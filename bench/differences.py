"""What the two brokers do not have in common, shown beside the figures that it affects."""

VALIDATION = (
    "Kafka reads every record of a batch, compressed ones too; Ottla checks the header, the CRC and that the records "
    "frame, compressed ones within its bounds"
)
HEAP_AT_START = "Kafka's JVM takes its whole heap at the start (-Xms1G -Xmx1G, as its start script says)"
HEAP_GROWS = "Kafka's heap begins at 32 MB and grows as it needs to (-Xms32M -Xmx1G)"
SESSIONS = (
    "a silent broker is fenced after 9 s by Kafka and after 3 s by Ottla (broker.session.timeout.ms); Ottla also sees "
    "the connections of an ended process close"
)
EQUAL_SESSIONS = (
    "both fence a silent broker after 3 s and hear from it every 0.5 s (Kafka's defaults are 9 s and 2 s); Ottla also "
    "sees the connections of an ended process close"
)
