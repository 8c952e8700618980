"""AddOffsetsToTxn: a group's offsets join a producer's transaction, by the partition that keeps them.

v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE (KIP-890).
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import AddOffsetsToTxnRequest
from ottla.api.transaction_codes import fenced_as
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.deciding import ProducerSession

FENCED_SINCE = 2


@api(key=25, versions=(0, 4))
async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, call: Call, groups: GroupCoordinator, transactions: TransactionCoordinator
) -> Answer:
    session = ProducerSession(request.producer_id, request.producer_epoch)
    try:
        if not request.group_id:
            raise KafkaError(Code.invalid_group_id)
        kept_in = await groups.partition_for(request.group_id)
        code = (await transactions.add(request.transactional_id, session, [kept_in])).code
    except KafkaError as error:
        code = error.code
    return call.reply(error_code=fenced_as(code, call.version, since=FENCED_SINCE))
