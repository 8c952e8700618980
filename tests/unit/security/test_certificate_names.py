"""Names in certificates as Java writes them. The texts were printed by X500Principal.getName() of OpenJDK 17."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type as Tag
from cryptography.x509.oid import NameOID as Of
from ottla.security.core.certificate_names import BadCertificate, distinguished_name, subject_of
from support.certificates import Authority

Pairs = list[tuple[x509.ObjectIdentifier, str]]

JAVAS: list[tuple[list[Pairs], str]] = [
    ([[(Of.COMMON_NAME, "alice")]], "CN=alice"),
    (
        [
            [(Of.COUNTRY_NAME, "DE")], [(Of.STATE_OR_PROVINCE_NAME, "Hessen")], [(Of.LOCALITY_NAME, "a, b")],
            [(Of.ORGANIZATION_NAME, ' x=y+z<>#;"\\ ')], [(Of.ORGANIZATIONAL_UNIT_NAME, "#1")],
            [(Of.COMMON_NAME, "  two  ")],
        ],
        'CN=\\ \\ two\\ \\ ,OU=\\#1,O=\\ x\\=y\\+z\\<\\>\\#\\;\\"\\\\\\ ,L=a\\, b,ST=Hessen,C=DE',
    ),
    (
        [[(Of.COMMON_NAME, "Jürgen Ünï 日本")], [(Of.EMAIL_ADDRESS, "a@b.c")]],
        "1.2.840.113549.1.9.1=#16056140622e63,CN=Jürgen Ünï 日本",
    ),
    (
        [[(Of.USER_ID, "u1"), (Of.COMMON_NAME, "c")], [(Of.DOMAIN_COMPONENT, "org")], [(Of.STREET_ADDRESS, "s")]],
        "STREET=s,DC=org,CN=c+UID=u1",
    ),
    (
        [[(Of.SERIAL_NUMBER, "12")], [(Of.TITLE, "Dr")], [(Of.COMMON_NAME, "x\r")]],
        "CN=x\\\r,2.5.4.12=#0c024472,2.5.4.5=#13023132",
    ),
    ([[(Of.COMMON_NAME, " ")], [(Of.SURNAME, "S")]], "2.5.4.4=#0c0153,CN=\\ "),
    ([[(Of.COMMON_NAME, "nul\0l \t~*@")]], "CN=nul\\00l \t~*@"),
]  # fmt: skip


def der_of(name: x509.Name) -> bytes:
    return Authority().issue(name).certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize(("name", "javas"), JAVAS)
def test_as_java_writes_them(name: list[Pairs], javas: str) -> None:
    parts = [x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in pairs]) for pairs in name]
    assert distinguished_name(subject_of(der_of(x509.Name(parts)))) == javas


@pytest.mark.parametrize(
    ("tag", "javas"),
    [
        (Tag.T61String, "CN=t\\ "),
        (Tag.BMPString, "CN=\\00t\\00\\ "),
        (Tag.UniversalString, "CN=#1c080000007400000020"),
    ],
)
def test_other_kinds_of_strings(tag: Tag, javas: str) -> None:
    name = x509.Name([x509.NameAttribute(Of.COMMON_NAME, "t ", tag)])
    assert distinguished_name(subject_of(der_of(name))) == javas


def test_every_cut_of_a_certificate_is_refused() -> None:
    whole = der_of(x509.Name([x509.NameAttribute(Of.COMMON_NAME, "alice")]))
    for size in range(len(whole)):
        with pytest.raises(BadCertificate):
            subject_of(whole[:size])
