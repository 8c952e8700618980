"""The authorizer of a broker follows the ACLs in the metadata; what it denies is written into the audit trail."""

from ottla.config import BrokerConfig
from ottla.config.authorizers import super_users_of
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.audit import AuditFiles
from ottla.security.core.access import Authorizer, OpenAuthorizer
from ottla.security.core.acls import AclAuthorizer
from ottla.system import System

__all__ = ["audit_file_of", "authorizer_of"]


def authorizer_of(config: BrokerConfig, feed: MetadataFeed) -> Authorizer:
    """On the data loop, where all that ask it run."""
    if not config["authorizer.class.name"].strip():
        return OpenAuthorizer()
    authorizer = AclAuthorizer(
        feed.image.acls.values(),
        super_users=super_users_of(config["super.users"]),
        allow_if_no_acl=config["allow.everyone.if.no.acl.found"],
    )

    def image_moved(old: Image, new: Image, changes: Changes) -> None:
        if changes.acls_removed or changes.acls_added:
            authorizer.change(removed=changes.acls_removed.values(), added=changes.acls_added.values())

    feed.subscribe(image_moved)
    return authorizer


def audit_file_of(config: BrokerConfig, system: System) -> AuditFiles | None:
    """None where no file is named. Refusal when it cannot be written."""
    path: str = config["ottla.audit.log.file"]
    if not path:
        return None
    return AuditFiles(
        path,
        size_bytes_max=config["ottla.audit.log.file.bytes.max"],
        files_max=config["ottla.audit.log.files.max"],
        clock=system.clock,
    )
