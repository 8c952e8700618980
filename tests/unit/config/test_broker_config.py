"""Loading: files, flags, addresses, refusals and warnings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.config import BrokerConfig, Endpoint, Voter, configure
from ottla.config.loading import load
from ottla.errors import Refusal
from support.kafkas_own_file import KAFKAS_OWN_FILE


def with_settings(**settings: str) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return configure(given, dict.fromkeys(given, "--set"), hostname="here")


@pytest.fixture
def file(tmp_path):
    def write(text: str | bytes) -> str:
        path = tmp_path / "server.properties"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_without_anything_a_broker_on_this_machine():
    config = load(None, {}, None)
    assert config.listeners == config.advertised == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert (config.node_id, config.roles, config.log_dirs) == (0, ("broker", "controller"), ("./ottla-data",))
    assert config.metadata_log_dir == "./ottla-data"
    assert config.cluster_id is None and config.rack is None
    assert not config.explicit and not config.warnings
    assert config["log.retention.hours"] == 168


def test_kafkas_own_file_loads(file):
    config = load(file(KAFKAS_OWN_FILE), {}, None)
    assert config.node_id == config["broker.id"] == 1
    assert config.listeners == (Endpoint("PLAINTEXT", "", 9092),)
    assert config.advertised == (Endpoint("PLAINTEXT", "localhost", 9092),)
    assert config.controller_listeners == (Endpoint("CONTROLLER", "", 9093),)
    assert config.warnings == ()
    assert "num.network.threads" in config.without_effect and "log.dirs" not in config.without_effect


def test_flags_win_over_the_file_and_say_where_a_value_came_from(file):
    path = file("\nnum.partitions=3\nlog.dirs=/a,/b\nlog.retention.hours=1")
    config = load(path, {"num.partitions": "4"}, "/c")
    assert (config["num.partitions"], config.log_dirs, config["log.retention.hours"]) == (4, ("/c",), 1)
    assert config.sources["num.partitions"] == "--set"
    assert config.sources["log.dirs"] == "--data-dir"
    assert config.sources["log.retention.hours"] == f"{path}, line 4"


NAMED = "PLAINTEXT://:9092,CONTROLLER://:9093"


@pytest.mark.parametrize(
    ("servers", "more", "others"),
    [
        ("a:9094,[::2]:9094", {}, ("a:9094", "[::2]:9094")),
        ("a:9094,HERE:9094,b:9094", {}, ("a:9094", "b:9094")),
        ("here:9094", {}, ()),
        ("127.0.0.1:7", {"ottla_grpc_port": "7"}, ()),
        ("127.0.0.1:8", {"ottla_grpc_port": "7"}, ("127.0.0.1:8",)),
        ("localhost:9093", {"listeners": NAMED, "controller_listener_names": "CONTROLLER"}, ()),
        ("there:9093", {"listeners": NAMED, "controller_listener_names": "CONTROLLER"}, ("there:9093",)),
        (
            "there:9093",
            {
                "listeners": NAMED,
                "controller_listener_names": "CONTROLLER",
                "advertised_listeners": "PLAINTEXT://there:19092",
            },
            (),
        ),
        ("a:9094", {"controller_quorum_voters": "0@here:9094"}, ()),
    ],
)
def test_other_nodes_are_asked_for_the_voters(servers, more, others):
    assert with_settings(controller_quorum_bootstrap_servers=servers, **more).quorum_servers == others


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, "127.0.0.1"),
        ({"listeners": "PLAINTEXT://:9092"}, "here"),
        ({"listeners": NAMED, "advertised_listeners": "PLAINTEXT://there:1,CONTROLLER://ctl:2"}, "there"),
        ({"listeners": "CONTROLLER://:9093"}, "here"),
        ({"listeners": "CONTROLLER://0.0.0.0:9093"}, "here"),
        ({"listeners": "CONTROLLER://ctl:9093"}, "ctl"),
        ({"listeners": "CONTROLLER://:9093", "advertised_listeners": "CONTROLLER://ctl:2"}, "ctl"),
    ],
)
def test_where_other_nodes_reach_this_one(settings, host):
    assert with_settings(controller_listener_names="CONTROLLER", **settings).host == host


def test_voters_win_over_bootstrap_servers_with_a_warning():
    config = with_settings(controller_quorum_bootstrap_servers="a:1", controller_quorum_voters="0@here:9094")
    name = "controller.quorum.bootstrap.servers"
    assert config.warnings == (f"--set: {name} is ignored: controller.quorum.voters names the voters",)


@pytest.mark.parametrize(
    ("settings", "listeners", "advertised"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, ["PLAINTEXT://:9092"], ["PLAINTEXT://here:9092"]),
        ({"listeners": "plaintext://[::1]:0"}, ["PLAINTEXT://[::1]:0"], ["PLAINTEXT://[::1]:0"]),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised_listeners": "PLAINTEXT://broker.example:19092"},
            ["PLAINTEXT://0.0.0.0:9092"],
            ["PLAINTEXT://broker.example:19092"],
        ),
        (
            {"listeners": "IN://a:1,OUT://a:2", "listener_security_protocol_map": "IN:PLAINTEXT,OUT:PLAINTEXT"},
            ["IN://a:1", "OUT://a:2"],
            ["IN://a:1", "OUT://a:2"],
        ),
        (
            {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2", "controller_listener_names": "CONTROLLER"},
            ["PLAINTEXT://a:1"],
            ["PLAINTEXT://a:1"],
        ),
    ],
)
def test_listeners(settings, listeners, advertised):
    config = with_settings(**settings)
    assert [str(endpoint) for endpoint in config.listeners] == listeners
    assert [str(endpoint) for endpoint in config.advertised] == advertised


TLS = {"listeners": "SSL://a:1", "ssl_keystore_location": "/broker.pem"}
SASL = {
    "listeners": "IN://a:1",
    "sasl_enabled_mechanisms": "PLAIN",
    "listener_security_protocol_map": "IN:SASL_PLAINTEXT",
}


def test_protocols_of_listeners():
    """No listener pretends to be secured."""
    with pytest.raises(Refusal, match=r"TLS://a:2 asks for SSL: a certificate is missing; set ssl.keystore.type=PEM"):
        with_settings(
            listeners="PLAINTEXT://a:1,TLS://a:2", listener_security_protocol_map="plaintext:plaintext,tls:ssl"
        )


def test_settings_of_security_are_not_passed_over():
    config = with_settings(ssl_keystore_location="/nowhere", sasl_enabled_mechanisms="PLAIN")
    assert config.warnings == (
        "--set: ssl.keystore.location: without effect, no listener has TLS",
        "--set: sasl.enabled.mechanisms: without effect, no listener has SASL",
    )


def test_voters():
    assert with_settings(controller_quorum_voters="1@a:9093, 2@[::1]:9094").voters == (
        Voter(1, "a", 9093),
        Voter(2, "::1", 9094),
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_partitions": "0"}, "--set: num.partitions=0: Value must be at least 1"),
        ({"num_partitions": "many"}, "--set: num.partitions=many: expected a number (int), such as the default 1"),
        ({"log_retention_ms": "0"}, "--set: log.retention.ms=0: log.retention.ms must be unlimited (-1) or"),
        (
            {"compression_type": "brotli"},
            "--set: compression.type=brotli: String must be one of: uncompressed, zstd, lz4",
        ),
        ({"process_roles": "king"}, "--set: process.roles=king: String must be one of: broker, controller"),
        ({"process_roles": ""}, "process.roles is empty; allowed are broker, controller or both"),
        ({"node_id": "1", "broker_id": "2"}, "--set: broker.id=2 differs from node.id=1; give one of them only"),
        (
            {"listeners": "9092"},
            "--set: listeners=9092: Error creating broker listeners from '9092': Unable to parse 9092",
        ),
        ({"listeners": "9092"}, "expected NAME://host:port, such as PLAINTEXT://127.0.0.1:9092"),
        ({"listeners": "PLAINTEXT://a:99999"}, "a port is at most 65535"),
        ({"listeners": "SASL_SSL://a:1"}, "SASL_SSL://a:1 asks for SASL_SSL: a certificate is missing"),
        (
            {"listeners": "SASL_PLAINTEXT://a:1"},
            "Kerberos (GSSAPI, Kafka's default) is not supported; set sasl.enabled",
        ),
        ({**TLS, "ssl_client_auth": "required"}, "needs ssl.truststore.location: whose certificates are to be trusted"),
        ({**TLS, "ssl_enabled_protocols": "TLSv1.1"}, "ssl.enabled.protocols must be some of TLSv1.2, TLSv1.3"),
        ({**TLS, "ssl_engine_factory_class": "x.Y"}, "ssl.engine.factory.class: Java classes cannot be loaded; remove"),
        (
            {**TLS, "principal_builder_class": "x.Y"},
            "principal.builder.class: Java classes cannot be loaded; remove it",
        ),
        (
            {**SASL, "listener.name.in.plain.sasl.server.callback.handler.class": "x.Y"},
            "sasl.server.callback.handler.class=x.Y for PLAIN: Java classes cannot be loaded",
        ),
        (
            {
                "listeners": "PLAINTEXT://a:1,C://a:2",
                "controller_listener_names": "C",
                "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,C:SSL",
            },
            "C://a:2 asks for SSL, but controllers talk over gRPC",
        ),
        (
            {"authorizer_class_name": "kafka.Acl"},
            "--set: authorizer.class.name=kafka.Acl: Ottla has no such authorizer",
        ),
        (
            {"listeners": "SSL://a:1", "advertised_listeners": "PLAINTEXT://a:1"},
            "advertised.listeners names PLAINTEXT, which is not among listeners (SSL)",
        ),
        ({"node_id": "99999999999"}, "--set: node.id=99999999999: out of range: 0 to 2147483647 are allowed"),
        ({"broker_id": "-99999999999"}, "out of range: "),
        ({"log_retention_ms": "9" * 30}, "out of range: "),
        ({"cluster_id": "MkU3OEVBNTcwNTJENDM2"}, "'MkU3OEVBNTcwNTJENDM2' is not a cluster id of 22 characters"),
        ({"log_retention_ms": "x"}, "--set: log.retention.ms=x: expected a number (long)"),
        ({"listeners": "X://a:1"}, "No protocol for X in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "different name"),
        ({"listeners": "PLAINTEXT://a:1,SSL://a:1"}, "different port"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "clients cannot connect to 0.0.0.0; set advertised.listeners"),
        ({"advertised_listeners": "SSL://a:1"}, "names SSL, which is not among listeners (PLAINTEXT)"),
        ({"listener_security_protocol_map": "A"}, "'A' is not NAME:PROTOCOL"),
        ({"controller_quorum_voters": "a:1"}, "--set: controller.quorum.voters=a:1: 'a:1' is not id@host:port"),
        ({"controller_quorum_voters": "1@a:1,1@b:1"}, "a voter's id appears twice"),
        ({"controller_quorum_bootstrap_servers": "a"}, "'a' is not host:port"),
        ({"log_dirs": " , "}, "log.dirs is empty"),
        ({"log_dirs": "/a,/a"}, "log.dirs=/a,/a names a directory twice"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip=0 shuts all clients out"),
        ({"replica_fetch_wait_max_ms": "40000"}, "replica.fetch.wait.max.ms must not be more than"),
        ({"queued_max_request_bytes": "5"}, "queued.max.request.bytes must not be less than"),
    ],
)
def test_refusals_say_where_what_and_why(settings, sentence):
    with pytest.raises(Refusal) as refusal:
        with_settings(**settings)
    assert sentence in str(refusal.value)


def test_a_refusal_names_file_and_line(file):
    path = file("\n\nnum.partitions=-1")
    with pytest.raises(Refusal) as refusal:
        load(path, {}, None)
    assert str(refusal.value) == f"{path}, line 3: num.partitions=-1: Value must be at least 1"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(Refusal, match=r"cannot read .*missing: No such file or directory"):
        load(str(tmp_path / "missing"), {}, None)


def test_a_broken_file(file):
    with pytest.raises(Refusal, match=r"line 1: .*hexadecimal"):
        load(file("a=\\uzzzz"), {}, None)


def test_a_file_in_latin_1(file):
    assert load(file(b"# caf\xe9\nbroker.rack=\xe9"), {}, None).rack == "é"


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        (
            "log.retention.hour",
            "--set: unknown setting log.retention.hour is ignored; did you mean log.retention.hours",
        ),
        ("qwertyuiop", "--set: unknown setting qwertyuiop is ignored"),
        ("zookeeper.connect", "--set: zookeeper.connect is ignored: Kafka 4 has no ZooKeeper, nor has Ottla"),
        ("inter.broker.protocol.version", "--set: inter.broker.protocol.version is ignored: the fleet's"),
        ("rsm.config.bucket", None),
        ("listener.name.tls.ssl.keystore.location", "--set: listener.name.tls.ssl.keystore.location: without effect"),
    ],
)
def test_warnings(name, warning):
    warnings = configure({name: "x"}, {name: "--set"}).warnings
    assert [text.startswith(warning or "") for text in warnings] == ([True] if warning else [])


def test_secrets_are_not_shown():
    config = with_settings(ssl_key_password="hush")
    assert config["ssl.key.password"] == "hush"
    assert "hush" not in repr(config)


@given(st.dictionaries(st.sampled_from(["listeners", "log.dirs", "node.id", "x", "advertised.listeners"]), st.text()))
def test_any_file_loads_or_is_refused(values):
    try:
        configure(values, dict.fromkeys(values, "file"))
    except Refusal as refusal:
        assert str(refusal)
