"""What the commands know of Kafka's protocol: one request at a time, in our own codecs.

settings      how to reach a fleet and log in, from a file in librdkafka's or Java's names
connection    one connection: TLS, the login, and what is said when either fails; scram is the client's side of SCRAM
client        several brokers: whom to ask; admin: ACLs, users and settings
options       the two options that all commands share
"""
