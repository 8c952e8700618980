"""PySpark pipelines over Kafka topics, one per file: read → transform(df) → write.

A pipeline's `transform` is pure (DataFrame → DataFrame: no clock, no chance, no I/O), so it is tested on a handful of
rows. Nothing here imports `ottla`: the same files run in the Spark image, where only PySpark and a Kafka client are.
`catalogue` lists the pipelines without importing PySpark.
"""
