"""DescribeCluster. v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)."""

from ottla.api.authorizing import NOT_ASKED, may_cluster, operations
from ottla.api.call import Answer, Call
from ottla.api.cluster_view import ClusterView, brokers_on
from ottla.api.registry import api
from ottla.api.requests import DescribeClusterRequest
from ottla.errors import Code
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource

BROKERS = 1


@api(key=60, versions=(0, 2))
def describe_cluster(request: DescribeClusterRequest, call: Call, feed: MetadataFeed, view: ClusterView) -> Answer:
    if request.endpoint_type != BROKERS:
        return call.reply(
            error_code=Code.mismatched_endpoint_type,
            error_message="This is a broker's listener; controllers have none for clients",
            endpoint_type=BROKERS,
        )
    bits = NOT_ASKED
    if request.include_cluster_authorized_operations:
        is_allowed = may_cluster(call, Operation.DESCRIBE)
        bits = operations(call, Resource.CLUSTER, CLUSTER_NAME) if is_allowed else 0
    image = feed.image
    listed = brokers_on(image, call.client.listener, fenced=request.include_fenced_brokers)
    return call.reply(
        error_code=Code.none,
        error_message=None,
        endpoint_type=BROKERS,
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        cluster_authorized_operations=bits,
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
