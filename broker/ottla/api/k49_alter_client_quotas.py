"""AlterClientQuotas (KIP-546): set and remove quotas of users, client ids and addresses. v1 flexible."""

from typing import Any

from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import AlterClientQuotasEntryData, AlterClientQuotasRequest
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import AlterClientQuotas, Outcome, QuotaChange
from ottla.metadata.model.state import QuotaEntity
from ottla.security.core.access import Operation


@api(key=49, versions=(0, 1))
async def alter_client_quotas(request: AlterClientQuotasRequest, call: Call, controller: ControllerClient) -> Answer:
    changes = [_change(entry) for entry in request.entries]
    try:
        require_cluster(call, Operation.ALTER_CONFIGS)
        outcomes = await controller.submit(AlterClientQuotas(changes, validate_only=request.validate_only))
    except KafkaError as error:
        outcomes = [Outcome(change.entity, error.code, error.message) for change in changes]
    return call.reply(entries=[_line(outcome) for outcome in outcomes])


def _change(entry: AlterClientQuotasEntryData) -> QuotaChange:
    entity = tuple((one.entity_type, one.entity_name) for one in entry.entity)
    return QuotaChange(entity, [(one.key, None if one.remove else one.value) for one in entry.ops])


def _line(outcome: Outcome[QuotaEntity]) -> dict[str, Any]:
    return {
        "error_code": outcome.code,
        "error_message": outcome.message,
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in outcome.value],
    }
