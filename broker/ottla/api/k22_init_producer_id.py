"""InitProducerId: an id for an idempotent producer.

v2 flexible · v3 producer id and epoch given (KIP-360) · v4-5 KIP-890.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code


@api(key=22, versions=(0, 5))
async def init_producer_id(request: Any, call: Call) -> Answer:
    if request.transactional_id is not None:
        return call.reply(error_code=Code.coordinator_not_available, producer_id=-1, producer_epoch=-1)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return call.reply(error_code=Code.invalid_request, producer_id=-1, producer_epoch=-1)
    return call.reply(error_code=Code.none, producer_id=await call.node.producer_ids.next(), producer_epoch=0)
