"""The cluster that a run of tests uses, with the names that the run has in it."""

from dataclasses import dataclass

from cluster.visit import Visit

from scripts.local_kubernetes.access import Access


@dataclass(frozen=True, kw_only=True)
class VisitedCluster(Access):
    visit: Visit

    @property
    def namespace(self) -> str:
        """Of everything that the tests make."""
        return self.visit.namespace


def visited(access: Access, visit: Visit) -> VisitedCluster:
    return VisitedCluster(access.kind, access.kubeconfig, access.programs, visit=visit)
