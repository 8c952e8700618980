"""InitProducerId: an id and an epoch for an idempotent or transactional producer.

v2 flexible · v3 producer id and epoch given (KIP-360) · v4 PRODUCER_FENCED · v5 KIP-890.
"""

from ottla.api.authorizing import may, may_any, may_cluster, sees
from ottla.api.call import Answer, Call
from ottla.api.producer_ids import ProducerIds
from ottla.api.registry import api
from ottla.api.requests import InitProducerIdRequest
from ottla.api.transaction_codes import fenced_as
from ottla.errors import Code, KafkaError
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.deciding import ProducerSession

FENCED_SINCE = 4


@api(key=22, versions=(0, 5))
async def init_producer_id(
    request: InitProducerIdRequest, call: Call, producer_ids: ProducerIds, transactions: TransactionCoordinator
) -> Answer:
    if (refused := _refused(request.transactional_id, call)) is not None:
        return _refusal(refused, call)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return _refusal(Code.invalid_request, call)
    if request.transactional_id is None:
        return call.reply(error_code=Code.none, producer_id=await producer_ids.next(), producer_epoch=0)
    session = ProducerSession(request.producer_id, request.producer_epoch)
    try:
        decision = await transactions.initiate(
            request.transactional_id,
            timeout_ms=request.transaction_timeout,
            expected=session if session.producer_id >= 0 else None,
        )
    except KafkaError as error:
        return _refusal(error.code, call)
    if decision.code is not Code.none:
        return _refusal(decision.code, call)
    return call.reply(error_code=Code.none, producer_id=decision.producer_id, producer_epoch=decision.epoch)


def _refused(transactional_id: str | None, call: Call) -> Code | None:
    """Who may write to any topic may do so idempotently (KIP-679)."""
    if transactional_id is not None:
        allowed = may(call, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
        return None if allowed else Code.transactional_id_authorization_failed
    if sees(call, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME):
        return None
    if may_any(call, Operation.WRITE, Resource.TOPIC) or may_cluster(call, Operation.IDEMPOTENT_WRITE):
        return None
    return Code.cluster_authorization_failed


def _refusal(code: Code, call: Call) -> Answer:
    code = fenced_as(code, call.version, since=FENCED_SINCE)
    return call.reply(error_code=code, producer_id=-1, producer_epoch=-1)
