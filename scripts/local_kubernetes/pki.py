"""A certificate authority that lives as long as the cluster, and a kubeconfig for each of its members."""

import json
from dataclasses import dataclass
from pathlib import Path

from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import API_ADDRESS, API_PORT, NODES, SERVICE_OF_API, state_folder

DAYS = "30"
API_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


@dataclass(frozen=True)
class Member:
    name: str
    subject: str
    alternatives: str


MEMBERS = (
    Member(
        "api",
        "/CN=kube-apiserver",
        ",".join([f"IP:127.0.0.1,IP:{SERVICE_OF_API},IP:{API_ADDRESS}", *(f"DNS:{name}" for name in API_NAMES)]),
    ),
    Member("admin", "/O=system:masters/CN=admin", "DNS:admin"),
    Member("controller", "/CN=system:kube-controller-manager", "DNS:controller"),
    Member("scheduler", "/CN=system:kube-scheduler", "DNS:scheduler"),
    *(
        Member(node.name, f"/O=system:nodes/CN=system:node:{node.name}", f"IP:{API_ADDRESS},DNS:{node.name}")
        for node in NODES
    ),
)


def folder() -> Path:
    return state_folder() / "pki"


def make() -> None:
    folder().mkdir(parents=True, mode=0o700)
    _key("ca")
    run("openssl", "req", "-x509", "-key", folder() / "ca.key", "-out", folder() / "ca.crt", "-subj", "/CN=ottla-test")
    _key("service-accounts")
    accounts = folder() / "service-accounts"
    run("openssl", "pkey", "-in", f"{accounts}.key", "-pubout", "-out", f"{accounts}.pub")
    for member in MEMBERS:
        _certificate(member)
        _kubeconfig(member.name)


def _key(name: str) -> None:
    curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    run("openssl", "genpkey", *curve, "-out", folder() / f"{name}.key")


def _certificate(member: Member) -> None:
    _key(member.name)
    stem = folder() / member.name
    extensions = stem.with_suffix(".ext")
    extensions.write_text(f"subjectAltName={member.alternatives}\n")
    request = run("openssl", "req", "-new", "-key", f"{stem}.key", "-subj", member.subject)
    authority = ("-CA", folder() / "ca.crt", "-CAkey", folder() / "ca.key", "-CAcreateserial")
    sign = ("openssl", "x509", "-req", *authority, "-days", DAYS, "-extfile", extensions, "-out", f"{stem}.crt")
    run(*sign, stdin=request)


def _kubeconfig(name: str) -> None:
    files = {"client-certificate": f"{folder()}/{name}.crt", "client-key": f"{folder()}/{name}.key"}
    server = {"server": f"https://{API_ADDRESS}:{API_PORT}", "certificate-authority": f"{folder()}/ca.crt"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ottla",
        "contexts": [{"name": "ottla", "context": {"cluster": "ottla", "user": name}}],
        "clusters": [{"name": "ottla", "cluster": server}],
        "users": [{"name": name, "user": files}],
    }
    path = folder() / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
