"""The image of the fleet's metadata and the records it is made of. Pure.

image, tables, state   the image: immutable tables of values
apply                  the next image from records
changes                what differs between two images
records, snapshot      their bytes
topic_names            Kafka's rules for topic names
"""
