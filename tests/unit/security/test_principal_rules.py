"""ssl.principal.mapping.rules: the examples of Kafka's own test and documentation, and its edges."""

import pytest
from ottla.security.core.principal_rules import BadRule, NoRuleApplies, PrincipalRules

RULES = """RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,
    RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L ,
    RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,
    DEFAULT"""


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=alice,OU=x", "CN=alice,OU=x"),
        (RULES, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (RULES, "cn=Duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (RULES, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        ("RULE:^CN=(.*?)$/$1$2/", "CN=a", "a$2"),
        ("RULE:^CN=(.*?)$/$12/", "CN=a", "a2"),
        ("RULE:^CN=(.*?)$/\\/$1/", "CN=a", "/a"),
        ("RULE:^CN=(.*?)$/\\$1/", "CN=a", "$1"),
        ("RULE:^CN=(.*?)$/$0!/", "CN=a", "CN=a!"),
        ("RULE:^CN=a\\/b$/x/", "CN=a/b", "x"),
        ("RULE:^CN=(?<who>.*?)$/${who}/U", "CN=a", "A"),
        (",,DEFAULT", "CN=a", "CN=a"),
    ],
)
def test_rules(rules: str, name: str, principal: str) -> None:
    assert PrincipalRules(rules).apply(name) == principal


@pytest.mark.parametrize("rules", ["", "RULE:^CN=b$/x/", "RULE:CN=/x/"])
def test_no_rule_applies(rules: str) -> None:
    """A pattern has to be the whole name."""
    with pytest.raises(NoRuleApplies, match="No rules apply to CN=a"):
        PrincipalRules(rules).apply("CN=a")


@pytest.mark.parametrize(
    "rules", ["default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?)", "RULE:^CN=(.*?)$/$1/LU", "RULE:^CN=($/$1/"]
)
def test_bad_rules(rules: str) -> None:
    with pytest.raises(BadRule):
        PrincipalRules(rules)
