"""UnregisterBroker: forget a broker that will not come back (KIP-500)."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import UnregisterBrokerRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import UnregisterBroker


@api(key=64, versions=(0, 0))
async def unregister_broker(request: UnregisterBrokerRequest, call: Call, controller: ControllerClient) -> Answer:
    try:
        await controller.submit(UnregisterBroker(request.broker_id))
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message)
    return call.reply(error_code=Code.none, error_message=None)
