"""What the tests may do to a cluster that is not theirs."""

from pathlib import Path

import pytest
from cluster.belongings import Belongings
from cluster.tables import readme_commands
from cluster.visit import CRDS, RUN_LABEL, VERSION, Visit, is_same, refusal, visit_of

from scripts import images
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import CommandFailed

TOP = Path(__file__).parent.parent.parent.parent
GUEST = visit_of("existing", {"OTTLA_TEST_REGISTRY": "registry.example/ottla/", "OTTLA_TEST_TAG": "7"})
OURS = visit_of("own", {"OTTLA_TEST_REGISTRY": "registry.example/ottla"})


def test_every_run_has_a_namespace_of_its_own() -> None:
    names = {visit_of(kind, {}).namespace for kind in ("own", "kind", "existing") for _ in range(20)}
    assert len(names) == 60 and "default" not in names
    made = OURS.namespace_object(OURS.namespace)["metadata"]
    assert made == {"name": OURS.namespace, "labels": {RUN_LABEL: OURS.id}}


def test_our_own_cluster_gets_the_readmes_line_and_pulls_nothing() -> None:
    (install,) = readme_commands("helm")
    assert OURS.install(install) == [*install, "--set", "images.pullPolicy=Never"]


def test_in_a_strangers_cluster_every_name_is_the_runs_own() -> None:
    (install,) = readme_commands("helm")
    words = GUEST.install(install)
    assert words[:5] == ["install", GUEST.namespace, "charts/ottla", "--namespace", f"{GUEST.namespace}-system"]
    assert "--create-namespace" not in words, "the run makes it, and remembers its uid"
    assert {word for word in words if "=" in word} == {
        "images.pullPolicy=Always",
        "images.operator=registry.example/ottla/operator:7",
        "images.broker=registry.example/ottla/broker:7",
        "images.spark=registry.example/ottla/spark:7",
        f"watchNamespaces={{{GUEST.namespace}}}",
    }


def test_the_examples_name_no_namespace_and_take_the_strangers_images() -> None:
    assert images.VERSION == VERSION
    for path in (TOP / "examples").glob("*.yaml"):
        text = path.read_text()
        assert "namespace:" not in text, f"{path.name} could not be applied with -n"
        assert OURS.example(text) == text
        assert "docker.io/ottla" not in GUEST.example(text)


@pytest.mark.parametrize(
    ("visit", "crds", "sentence"),
    [
        (GUEST, CRDS[1:2], "has kafkatopics.ottla.dev already"),
        (visit_of("existing", {}), (), "set OTTLA_TEST_REGISTRY=registry.example/ottla"),
        (GUEST, ("others.example",), None),
        (OURS, CRDS, None),
        (visit_of("kind", {}), CRDS, None),
    ],
)
def test_when_the_tests_refuse_to_begin(visit: Visit, crds: tuple[str, ...], sentence: str | None) -> None:
    why = refusal(visit, crds=crds, kubeconfig="/home/someone/.kube/config")
    assert (why is None) == (sentence is None)
    assert sentence is None or (why is not None and sentence in why)


def test_what_bears_the_same_name_need_not_be_the_same() -> None:
    assert is_same({"a": "1"}, "a", "1")
    assert not is_same({"a": "1"}, "a", "2")
    assert not is_same({"a": "1"}, "a", None)
    assert not is_same({}, "default", "1")


class Kubectl(Access):
    """Answers from a table of uids, and keeps what was deleted."""

    def __init__(self, uids: dict[str, str], objects: str = "") -> None:
        super().__init__("existing", "", None)
        object.__setattr__(self, "uids", uids)
        object.__setattr__(self, "objects", objects)
        object.__setattr__(self, "deleted", [])

    def kubectl(self, *arguments: object, stdin: str | None = None, timeout_s: float = 120.0) -> str:
        verb, kind, *rest = map(str, arguments)
        if verb == "delete":
            self.deleted.append(" ".join([kind, *rest[:1]]))  # type: ignore[attr-defined]
        elif verb == "get" and "--all-namespaces" in rest:
            return str(self.objects)  # type: ignore[attr-defined]
        elif verb == "get":
            if rest[0] not in self.uids:  # type: ignore[attr-defined]
                raise CommandFailed(f'Error from server (NotFound): {kind} "{rest[0]}" not found')
            return str(self.uids[rest[0]])  # type: ignore[attr-defined]
        return ""


def belongings(*, later: dict[str, str] | None = None, objects: str = "") -> list[str]:
    uids = {"ours": "1", "default": "2", **dict.fromkeys(CRDS, "3")}
    access = Kubectl(dict(uids), objects)
    made = Belongings(access, GUEST)
    made.make_namespace("ours")
    made.definitions_installed()
    access.uids.update(later or {})  # type: ignore[attr-defined]
    made.remove_resources("ours")
    made.remove_resources("default")
    made.remove_namespaces()
    made.remove_definitions()
    return list(access.deleted)  # type: ignore[attr-defined]


def test_only_what_the_run_made_is_deleted() -> None:
    assert belongings() == [
        "kafkaclusters,kafkatopics,sparkapplications --all",
        "namespace ours",
        *(f"crd {name}" for name in CRDS),
    ]
    assert belongings(later={"ours": "9", **dict.fromkeys(CRDS, "9")}) == []
    assert [word for word in belongings(objects="kafkatopic/theirs") if word.startswith("crd")] == []
