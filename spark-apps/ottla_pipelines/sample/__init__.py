"""Sample events whose answer is known: made from a seed, computed without Spark, fed through a Kafka client."""
