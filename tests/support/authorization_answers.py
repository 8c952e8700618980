"""A broker with users and ACLs for `authorization_cases`, asked over SASL: the same for both kinds of broker."""

import time
import uuid
from typing import Any

from kio.index import load_response_schema
from kio.schema.create_acls.v3 import request as create
from kio.schema.create_acls.v3.response import CreateAclsResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from support.authorization_cases import ADMIN, CASES, STATES, TOPICS, verdict
from support.frames import Connection
from support.java import java_tool
from support.librdkafka import make_topic
from support.process import BrokerProcess

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def settings(sasl_port: int, plain_port: int, controller_port: int | None = None) -> dict[str, str]:
    users = sorted({case.user(state) for case in CASES for state in STATES})
    known = " ".join(f'user_{user}="{user}"' for user in users)
    listeners = f"PLAINTEXT://127.0.0.1:{plain_port},SASL://127.0.0.1:{sasl_port}"
    return {
        "listeners": listeners + (f",CONTROLLER://127.0.0.1:{controller_port}" if controller_port else ""),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{LOGIN} {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{ADMIN}",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def login(port: int, user: str, password: str | None = None) -> Connection:
    connection = Connection(port)
    connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = f"\0{user}\0{user if password is None else password}".encode()
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    assert not int(answer.error_code.value), answer
    return connection


def recorded(broker: BrokerProcess, sasl_port: int) -> dict[str, Any]:
    upgrade = ("upgrade", "--feature", "share.version=1")
    java_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", broker.bootstrap, *upgrade)
    for topic in TOPICS:
        make_topic(broker.bootstrap, topic)
    prepare(broker.port)
    with Connection(broker.port) as connection:
        asked = tuple(MetadataRequestTopic(topic_id=None, name=topic) for topic in TOPICS)
        request = MetadataRequest(
            topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        answer = connection.ask(request, MetadataResponse)
        ids = {str(topic.name): uuid.UUID(str(topic.topic_id)) for topic in answer.topics}
    found: dict[str, Any] = {}
    for case in CASES:
        found[case.name] = {}
        for state in STATES:
            with login(sasl_port, case.user(state)) as connection:
                response = load_response_schema(case.key, case.version)
                found[case.name][state] = verdict(connection.ask(case.request(state, ids), response))
    return found


def prepare(port: int) -> None:
    """ACLs, the coordinators' topics, and the first block of producer ids."""
    bindings = [binding for case in CASES for binding in case.bindings()]
    made = tuple(
        create.AclCreation(
            resource_type=each.resource_type,  # type: ignore[arg-type]
            resource_name=each.resource_name,
            resource_pattern_type=each.pattern_type,  # type: ignore[arg-type]
            principal=each.principal,
            host=each.host,
            operation=each.operation,  # type: ignore[arg-type]
            permission_type=each.permission,  # type: ignore[arg-type]
        )
        for each in bindings
    )
    with Connection(port) as connection:
        answer = connection.ask(create.CreateAclsRequest(creations=made), CreateAclsResponse)
        assert all(not int(each.error_code.value) for each in answer.results), answer
        for case in (each for each in CASES if each.key in (10, 22)):
            for _ in range(100):
                found = connection.ask(case.request("super", {}), load_response_schema(case.key, case.version))
                if not any(int(each.error_code.value) for each in getattr(found, "coordinators", (found,))):
                    break
                time.sleep(0.2)
