"""`ottla acls`: who may do what. It talks to any Kafka, by its own APIs."""

import json
from collections.abc import Callable
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ottla.cli.acl.verdict import Verdict, asked_of, open_to_all, verdict
from ottla.cli.acl.words import (
    KINDS,
    Pattern,
    check_host,
    check_possible,
    operations_of,
    pattern_of,
    principal_of,
    sentence,
    shown_pattern,
)
from ottla.cli.kafka.admin import AdminClient, NoAuthorizer
from ottla.cli.kafka.options import Bootstrap, Config
from ottla.cli.terminal import make_console
from ottla.errors import Refusal
from ottla.metadata.decisions.commands import AclFilter
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import Operation, Resource

__all__ = ["HELP", "commands"]

HELP = """\
Access control lists: who may do what to which topics, groups and transactional ids; and why somebody may not.

\b
examples:
  ottla acls add alice read,describe 'topic:orders*'
  ottla acls add alice read group:readers
  ottla acls list --principal alice
  ottla acls test alice read topic:orders-7 --host 10.0.0.7
  ottla acls remove alice read 'topic:orders*'
"""
TEST = """\
May somebody do something, and why? The exit status is 0 if so, 3 if not, 4 if the brokers do not tell you enough of
their settings to decide it, and 1 if it cannot be asked.
"""
DENIED_STATUS, UNDECIDED_STATUS = 3, 4
ANY = 1
commands = typer.Typer(no_args_is_help=True)
Output = Annotated[str, typer.Option("--output", "-o", metavar="FORMAT", help="table or json.")]
Who = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="User:alice, or alice; * for everybody.")]
What = Annotated[str, typer.Argument(metavar="OPERATION,…", help="Such as read,describe, or all.")]
Which = Annotated[
    str, typer.Argument(metavar="RESOURCE", help="topic:orders, 'topic:ord*', 'topic:*', group:…, cluster.")
]
Deny = Annotated[bool, typer.Option("--deny", help="An ACL that forbids it.")]
Host = Annotated[str, typer.Option(help="Address of the client that this is about; * for any.")]


@commands.command("list", help="ACLs; those about a resource with all that hold for it.")
def list_acls(
    resource: Annotated[
        str | None, typer.Argument(metavar="RESOURCE", help="A resource, such as topic:orders.")
    ] = None,
    principal: Annotated[str | None, typer.Option(help="Show only the ACLs of this principal.")] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
    output: Output = "table",
) -> None:
    _check_output(output)
    who = None if principal is None else principal_of(principal)
    if resource is None:
        filters = [AclFilter(kind, PatternType.ANY, None, who, None, ANY, ANY) for kind in KINDS.values()]
    else:
        asked = pattern_of(resource)
        how = PatternType.MATCH if asked.type is PatternType.LITERAL else PatternType.PREFIXED
        filters = [AclFilter(asked.resource, how, asked.name, who, None, ANY, ANY)]
    client = AdminClient(bootstrap, config)
    _show([binding for each in filters for binding in client.acls(each)], output)


def _command(change: Callable[[AdminClient, list[AclBinding]], None]) -> Callable[..., None]:
    """What is added and removed is named in the same way."""

    def changing(
        principal: Who,
        operations: What,
        resource: Which,
        deny: Deny = False,
        host: Host = "*",
        bootstrap: Bootstrap = None,
        config: Config = None,
    ) -> None:
        bindings = _bindings(principal, operations, resource, deny=deny, host=host)
        change(AdminClient(bootstrap, config), bindings)

    return changing


@commands.command("add", help="Allow somebody to do something, or deny it, which comes before all that allows it.")
@_command
def add(client: AdminClient, bindings: list[AclBinding]) -> None:
    for binding in bindings:
        check_possible(Operation(binding.operation), Resource(binding.resource_type))
        check_host(binding.host)
    client.create_acls(bindings)
    for binding in bindings:
        print(sentence(binding))


@commands.command("remove", help="Remove ACLs, exactly as they were added.")
@_command
def remove(client: AdminClient, wanted: list[AclBinding]) -> None:
    removed = client.delete_acls([_exactly(binding) for binding in wanted])
    for binding in removed:
        print(f"removed: {sentence(binding)}")
    if missing := [binding for binding in wanted if binding not in removed]:
        raise Refusal(f"there is no ACL that says: {sentence(missing[0])}")


@commands.command("test", help=TEST)
def test(
    principal: Who,
    operation: Annotated[str, typer.Argument(metavar="OPERATION")],
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="One of them: topic:orders-7, cluster.")],
    host: Annotated[str, typer.Option(help="Address that the client comes from.")] = "127.0.0.1",
    bootstrap: Bootstrap = None,
    config: Config = None,
    output: Output = "table",
) -> None:
    _check_output(output)
    asked = pattern_of(resource)
    if asked.type is not PatternType.LITERAL or asked.name == "*":
        raise Refusal(f"{resource}: one resource is expected, without a *")
    (what, *others) = operations_of(operation)
    if others or what is Operation.ALL:
        raise Refusal(f"{operation}: one operation is expected")
    check_possible(what, asked.resource)
    check_host(host)
    found = _verdict(AdminClient(bootstrap, config), principal_of(principal), what, asked, host)
    if output == "json":
        print(json.dumps(found.fields()))
    else:
        _print_verdict(found)
    if not found.allowed:
        raise typer.Exit(UNDECIDED_STATUS if found.allowed is None else DENIED_STATUS)


def _verdict(client: AdminClient, principal: str, operation: Operation, pattern: Pattern, host: str) -> Verdict:
    try:
        about = client.acls(AclFilter(pattern.resource, PatternType.MATCH, pattern.name, None, None, ANY, ANY))
    except NoAuthorizer:
        return open_to_all(asked_of(principal, operation, pattern, host))
    return verdict(principal, operation, pattern, host=host, bindings=about, rules=client.authorizer())


def _print_verdict(found: Verdict) -> None:
    style = {True: "green", False: "red", None: "yellow"}[found.allowed]
    console = make_console()
    console.print(Text(found.sentence(), style=style), soft_wrap=True)
    if found.remedy:
        console.print(Text(f"to allow it: {found.remedy}"), soft_wrap=True)


def _bindings(principal: str, operations: str, resource: str, *, deny: bool, host: str) -> list[AclBinding]:
    kind, pattern, name = pattern_of(resource)
    permission = Permission.DENY if deny else Permission.ALLOW
    who, what = principal_of(principal), operations_of(operations)
    return [AclBinding(kind, pattern, name, who, host, each, permission) for each in what]


def _exactly(binding: AclBinding) -> AclFilter:
    return AclFilter(
        binding.resource_type,
        binding.pattern_type,
        binding.resource_name,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )


def _check_output(output: str) -> None:
    if output not in ("table", "json"):
        raise Refusal(f"--output {output}: there are table and json")


def _show(bindings: list[AclBinding], output: str) -> None:
    rows = sorted(bindings, key=lambda each: (each.resource_type, each.resource_name, each.principal, each.operation))
    if output == "json":
        print(json.dumps([_fields(binding) for binding in rows]))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("principal", "permission", "operation", "resource", "host"):
        table.add_column(heading, no_wrap=True)
    for binding in rows:
        fields = _fields(binding)
        style = "red" if binding.permission == Permission.DENY else ""
        table.add_row(*(Text(fields[name], style=style) for name in fields))
    make_console().print(table if rows else "no ACLs")


def _fields(binding: AclBinding) -> dict[str, str]:
    return {
        "principal": binding.principal,
        "permission": Permission(binding.permission).name,
        "operation": Operation(binding.operation).name,
        "resource": shown_pattern(binding),
        "host": binding.host,
    }
