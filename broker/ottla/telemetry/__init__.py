"""What a node does, in numbers: declared in one table, read when somebody asks, told by OpenTelemetry.

    core/table         every instrument: name, kind, unit, labels, help. Nothing is measured that is not in it
    core/counting      what the metadata image says of this broker and of the fleet
    core/exposition    Prometheus' text format
    lag                how late a loop's timers are
    meters             OpenTelemetry's instruments over the table; `/metrics` of the health port

**The hot path adds to plain integers.** They are read at collection, in a thread, so that neither loop waits for it.
A package that has something to tell gives a function that reads it, by the instrument's name; the node puts them
together (`node.metering`). Label values are names that the operator of the fleet chose or that the protocol fixes,
never what a client sends: their number is bounded. `core` is pure.
"""
