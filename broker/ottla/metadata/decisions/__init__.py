"""The controller's decisions, by subject. Pure: (image, command, context) → records and a reply, or a KafkaError.

`commands` is what can be asked, `controller` the dispatch, `duties` what the controller does without being asked.
"""
