"""DescribeCluster. v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)."""

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on, controller_id
from ottla.api.registry import api
from ottla.api.requests import DescribeClusterRequest
from ottla.errors import Code

BROKERS = 1


@api(key=60, versions=(0, 2))
def describe_cluster(request: DescribeClusterRequest, call: Call) -> Answer:
    if request.endpoint_type != BROKERS:
        return call.reply(
            error_code=Code.mismatched_endpoint_type,
            error_message="This is a broker's listener; controllers have none for clients",
            endpoint_type=BROKERS,
        )
    image = call.node.image
    listed = brokers_on(image, call.listener, fenced=request.include_fenced_brokers)
    return call.reply(
        error_code=Code.none,
        error_message=None,
        endpoint_type=BROKERS,
        cluster_id=call.node.cluster_id,
        controller_id=controller_id(call),
        brokers=[
            {
                "broker_id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "is_fenced": image.brokers[broker.id].fenced,
            }
            for broker in listed
        ],
    )
