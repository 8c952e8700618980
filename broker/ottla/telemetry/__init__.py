"""Metrics of a node: declared in one table, collected on request, exported by OpenTelemetry.

    core/table         every instrument: name, kind, unit, labels, help. Nothing is measured that is not in it
    core/counting      values from the metadata image
    core/exposition    Prometheus' text format
    lag                how late a loop's timers are
    meters             OpenTelemetry's instruments over the table; `/metrics` of the health port

**The hot path adds to plain integers.** They are read at collection, in a thread, so neither loop waits for it. A
package provides a function that reads its values, by the instrument's name; `node.metering` collects these functions.
Label values are names that the fleet's operator chose or that the protocol fixes, never what a client sends: their
number is bounded. `core` is pure.
"""
