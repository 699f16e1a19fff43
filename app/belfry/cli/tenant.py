"""``belfry tenant``: how each tenant is treated.

A policy is a record in the topic of policies, keyed by its tenant. `set` reads the policy, changes
the fields that were named, checks the whole, and writes it. Workers follow the topic and have it
within two seconds.

    $ belfry tenant set payments max_pending=100000 lifecycle=ALL
    payments  lifecycle=ALL  max_pending=100000

With --http-url a worker does the same, and its key decides which fields may be set. Both ways are a
`PolicyStore` (`belfry.cli.policies`), so the commands do not ask which of them it is:

    policies_of(session) ─┬─ without --http-url   reads and writes the topic; needs rights in Kafka
                          └─ with --http-url      asks a worker; needs a key with a role

Two that set the same policy through Kafka at once may undo one another, since a record holds a
policy as a whole and the later one counts. The commands `top`, `counts`, `history` and `statistics`
always ask a worker, and `usage` reads a topic; their modules are `tenant_top`, `past` and `usage`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.assignments import assigned
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.key_left import with_key_left
from belfry.cli.looking import pages
from belfry.cli.past import counts, of_tenant, statistics
from belfry.cli.policies import kafka_policies, policies_of
from belfry.cli.policy_text import from_file, line, shown, whole
from belfry.cli.remote import Remote
from belfry.cli.session import Session, with_session
from belfry.cli.tenant_top import tenant_top
from belfry.cli.usage import usage

if TYPE_CHECKING:
    from belfry.cli.policies import PolicyStore
    from belfry.tenants.policy import TenantPolicy

# Above the lines of a list.
POLICIES: Final = "tenant, and the fields of its policy that differ from the defaults"
All = Annotated[
    bool,
    typer.Option("--all", help="Also tenants without a policy that have anything; asks a worker."),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the audit log.")
]
Name = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add ``tenant`` with its commands to the program."""
    group = Program()
    group.command("set")(with_session(set_))
    group.command("get")(with_session(get))
    group.command("list")(with_session(list_))
    group.command("top")(with_session(tenant_top))
    group.command("counts")(with_session(counts))
    group.command("history")(with_session(of_tenant))
    group.command("statistics")(with_session(statistics))
    group.command("usage")(with_session(usage))
    group.command("sign")(with_session(sign))
    group.command("remove")(with_session(remove))
    app.add_typer(group, name="tenant", help="Tenants: policies, figures, usage, waiting events.")


def set_(
    session: Session,
    tenant: Annotated[
        str | None, typer.Argument(metavar="TENANT", help="The tenant.", show_default=False)
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIELD=VALUE",
            help="Changes: delivery=ENVELOPE max_pending=100000; `none` takes a limit away.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="PATH",
            help="Policies as TOML ([tenants.NAME] tables) or JSON lines; each is replaced whole.",
        ),
    ] = None,
    *,
    share_topic: Annotated[
        bool,
        typer.Option("--share-topic", help="Allow the output_topic of another tenant's policy."),
    ] = False,
    reason: Reason = None,
) -> None:
    """Set fields of a tenant's policy, or whole policies from a file.

    Fields are those of TenantPolicy (docs/tenants.md): delivery, cloudevents, guarantee, spread,
    lifecycle, misfire, max_pending, max_requests_per_second, max_fires_per_second, priority,
    paused, output_topic ... In effect on every worker within two seconds. With --http-url this and
    the other commands ask a worker instead of Kafka.
    """
    policies = policies_of(session)
    # Exactly one of the two ways: fields of one policy, or whole policies.
    if (tenant is None) == (file is None):
        raise WrongUse("Give a tenant and FIELD=VALUE, or --file with whole policies.")
    if file is not None:
        found = list(from_file(file))
    else:
        found = [_with(policies, tenant or "", assigned(field or (), "paused=true"))]
    policies.put(*found, share_topic=share_topic, reason=reason)
    _warn(session, found)
    session.printer.many((shown(each), line(each)) for each in found)


def _warn(session: Session, policies: list[TenantPolicy]) -> None:
    """Say which policies hold credentials that everybody who reads the topic can read."""
    from belfry.schedules.header_secrets import literal_credentials, literal_warning

    for policy in policies:
        pairs = [pair for target in policy.http_targets for pair in target.headers]
        warning = literal_warning(literal_credentials(pairs))
        if warning is not None:
            session.printer.note(f"Warning: {policy.tenant}: {warning}.")


def get(session: Session, tenant: Name) -> None:
    """Show a tenant's policy with all of its fields."""
    found = policies_of(session).get(tenant)
    if found is None:
        raise CommandError(_no_policy(tenant), Exit.NOT_FOUND)
    session.printer.one(shown(found), whole(found))


def list_(session: Session, *, everyone: All = False) -> None:
    """List the tenants that have a policy, and its fields that differ from the defaults.

    With --all also those that have schedules or were counted, and no policy: programs get their
    name alone.
    """
    policies = policies_of(session).all()
    found = {name: (shown(each), line(each)) for name, each in policies.items()}
    none = "No tenant has a policy; all are treated by the defaults. --all lists those there are."
    if everyone:
        none = "There are no tenants yet."
        for name in map(str, pages(Remote(session), "/v1/tenants", "tenants", {}, None)):
            found.setdefault(name, ({"tenant": name}, f"{name}  defaults, without a policy"))
    session.printer.listed((found[name] for name in sorted(found)), POLICIES, none)


def sign(
    session: Session,
    tenant: Annotated[
        list[str] | None,
        typer.Argument(metavar="TENANT", help="The tenants; all unless given."),
    ] = None,
) -> None:
    """Sign policies as they stand, with the secret of the workers.

    The signer answers for the content of the policies: look at them first (belfry tenant list). All
    of them have to be signed before BELFRY_POLICIES=signed is set, and after the secret was
    changed.
    """
    if session.asks_http:
        raise WrongUse("Policies are signed through Kafka: leave --http-url out.")
    found = kafka_policies(session).sign(tenant or [])
    session.printer.many((shown(each), f"signed  {line(each)}") for each in found)


def remove(
    session: Session,
    tenant: Name,
    cancel_pending: Annotated[
        bool,
        typer.Option(
            "--cancel-pending",
            help="Refuse its requests from now on, and cancel its pending schedules.",
        ),
    ] = False,
    *,
    reason: Reason = None,
) -> None:
    """Remove a tenant's policy.

    Pending schedules stay: they fire by the defaults, or wait if unknown tenants are not served
    (BELFRY_UNKNOWN_TENANTS=closed). With --cancel-pending they are cancelled. If payloads are
    encrypted (payload_key_ref), workers forget the keys. The command says which secret you have to
    destroy, so that nobody can read them any more; `belfry payloads readable` checks it.
    """
    policies = policies_of(session)
    before = policies.get(tenant)
    # Asked before the policy is gone, which says where the key is.
    left = policies.to_destroy(before)
    if before is None and not cancel_pending:
        raise CommandError(_no_policy(tenant), Exit.NOT_FOUND)
    if cancel_pending:
        policies.put(_with(policies, tenant, {"removed": True}), reason=reason)
        text = f"removed  {tenant}: requests are refused, what is pending is cancelled"
    else:
        _check_removal(before)
        policies.remove(tenant, reason=reason)
        text = f"removed  {tenant}: it is treated by the defaults, or waits where those are closed"
    told = {"tenant": tenant, "cancel_pending": cancel_pending}
    session.printer.one(*with_key_left(tenant, left, told, text))


def _check_removal(policy: TenantPolicy | None) -> None:
    """Raise `CommandError` for a policy that says where schedules live."""
    from belfry.client.policy_fields import removal_problem

    problem = None if policy is None else removal_problem(policy)
    if problem is not None:
        raise CommandError(problem, Exit.CONFLICT)


def _no_policy(tenant: str) -> str:
    """The sentence for a tenant without a policy."""
    return f"Tenant {tenant!r} has no policy; `belfry tenant list` shows those that have one."


def _with(policies: PolicyStore, tenant: str, change: dict[str, Any]) -> TenantPolicy:
    """A tenant's policy with these fields changed; raises `BelfryError` for a forbidden value.

    A tenant that has been used keeps its former spread in mind, so that its schedules are found.
    """
    from belfry.client.policy_fields import changed
    from belfry.tenants.policy import TenantPolicy

    before = policies.get(tenant)
    used = before is not None or ("spread" in change and policies.is_known(tenant))
    return changed(before or TenantPolicy(tenant), change, used=used)
