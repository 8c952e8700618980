"""How a command logs in: files in librdkafka's and Java's names, and which address wins."""

import pytest
from ottla.cli.kafka.options import reached
from ottla.cli.kafka.settings import ClientSettings, read_settings, settings_of
from ottla.errors import Refusal

LIBRDKAFKA = """\
# a comment
bootstrap.servers=a:1
security.protocol=sasl_ssl
ssl.ca.location=ca.pem
sasl.mechanisms=SCRAM-SHA-512
sasl.username=ann
sasl.password=a\\b=c
client.id=mine
"""
JAVA = """\
bootstrap.servers: a:1
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="ann" password="a\\\\\\\\b=c";
"""


def test_both_kinds_of_files_say_the_same() -> None:
    expected = ClientSettings(
        "f", "a:1", "SASL_SSL", mechanism="SCRAM-SHA-512", user="ann", password="a\\b=c", ca="ca.pem"
    )
    assert settings_of(LIBRDKAFKA, "f") == expected
    assert settings_of(JAVA, "f") == expected
    assert "a\\b=c" not in repr(expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("security.protocol=TLS", "security.protocol=TLS: there are PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("sasl.user=ann", "sasl.user is not known here; did you mean sasl.username"),
        ("bootstrap.server=a:1", "did you mean bootstrap.servers"),
        ("security.protocol=SASL_SSL", "sasl.mechanism is missing"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", "logs in by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.username and sasl.password"),
        ("ssl.truststore.location=a.jks", "ssl.truststore.type=JKS is not read here; give PEM"),
        ("listeners=PLAINTEXT://:9092", "is the file of a broker"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=secret", "terminated by semi-colon"),
    ],
)
def test_what_would_be_ignored_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence) as refused:
        settings_of(text, "f")
    assert "secret" not in str(refused.value)


def test_the_address_of_the_command_line_comes_first(tmp_path) -> None:
    file = tmp_path / "client.conf"
    file.write_text("bootstrap.servers=a:1\n")
    assert reached("b:2", str(file))[0] == "b:2"
    assert reached(None, str(file))[0] == "a:1"
    assert reached(None, None)[0] == "127.0.0.1:9092"


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Refusal, match="--command-config /no/file cannot be read: No such file or directory"):
        read_settings("/no/file")
