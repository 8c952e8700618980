"""The controller's decisions, by subject. Pure: (image, command, context) → records and a reply, or a KafkaError.

commands, controller    the commands and their dispatch; duties: what the controller does periodically
brokers, sessions       registration, fencing, heartbeats; health: the fleet in numbers
topics, topic_rules     creating, deleting and growing topics; settings that the controller obeys
assignments, placement  replicas of new partitions
elections               how one partition changes: leader, in-sync set, ELR (KIP-966)
partitions              leaders and in-sync sets of all partitions
leadership, balance     requested elections; preferred leaders
reassignments, draining moving partitions; emptying a broker
safety                  whether a broker may be restarted now
configs, client_quotas, features    dynamic settings, quotas, finalized features
"""
