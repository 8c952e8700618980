"""EndTxn: commit or abort. Answered when the decision is safe; the markers follow.

v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE · v5 the producer's next epoch in the answer (KIP-890).
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import EndTxnRequest
from ottla.api.transaction_codes import fenced_as
from ottla.errors import KafkaError
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.deciding import Decision, ProducerSession
from ottla.txn.core.transaction import PER_TRANSACTION_EPOCHS

FENCED_SINCE, NEXT_EPOCH_SINCE = 2, 5


@api(key=26, versions=(0, 5))
async def end_txn(request: EndTxnRequest, call: Call, transactions: TransactionCoordinator) -> Answer:
    version = PER_TRANSACTION_EPOCHS if call.version >= NEXT_EPOCH_SINCE else 0
    session = ProducerSession(request.producer_id, request.producer_epoch)
    try:
        decision = await transactions.end(request.transactional_id, session, commit=request.committed, version=version)
    except KafkaError as error:
        decision = Decision(error.code)
    return call.reply(
        error_code=fenced_as(decision.code, call.version, since=FENCED_SINCE),
        producer_id=decision.producer_id,
        producer_epoch=decision.epoch,
    )
