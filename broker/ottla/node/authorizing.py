"""The authorizer of a broker follows the ACLs in the metadata."""

from ottla.config import BrokerConfig
from ottla.config.authorizers import super_users_of
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Authorizer, OpenAuthorizer
from ottla.security.core.acls import AclAuthorizer

__all__ = ["authorizer_of"]


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
