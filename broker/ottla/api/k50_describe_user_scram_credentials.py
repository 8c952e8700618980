"""DescribeUserScramCredentials (KIP-554): who has which credentials; never salts or keys."""

from typing import Any

from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeUserScramCredentialsRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.users import UserDescription, describe
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation


@api(key=50, versions=(0, 0))
async def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, call: Call, feed: MetadataFeed
) -> Answer:
    users = None if request.users is None else [user.name for user in request.users]
    try:
        require_cluster(call, Operation.DESCRIBE)
    except KafkaError as error:
        fields = {"error_code": error.code, "error_message": error.message}
        return call.reply(**fields, results=[{"user": user, **fields} for user in users or ()])
    lines = (_line(one) async for one in paced(describe(feed.image.scram_credentials, users), call))
    return call.reply(error_code=Code.none, error_message=None, results=await encoded(call, ("results",), lines))


def _line(one: UserDescription) -> dict[str, Any]:
    return {
        "user": one.user,
        "error_code": one.code,
        "error_message": one.message,
        "credential_infos": [
            {"mechanism": mechanism, "iterations": iterations} for mechanism, iterations in one.credentials
        ],
    }
