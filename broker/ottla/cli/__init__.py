"""The `ottla` command.

main             the Typer application; terminal, format: what is printed
serve            ottla serve: one node in this process
up, pipeline     ottla up: a local fleet, sample events and a Spark pipeline
fleet            ottla fleet: up, status, drain …; fleet_plan and fleet_processes start a local fleet,
                 fleet_addresses and control find and call the nodes, fleet_view prints them
groups           ottla groups; group_facts asks
users, acls       ottla users, ottla acls; acl decides in words
kafka            Kafka's protocol, as all of these speak it
config           ottla config: the settings and what they do
"""
