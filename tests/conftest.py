"""Options and fixtures shared by every chapter of the tests."""

import pytest
from hypothesis import HealthCheck, settings

# How fast a machine under load is says nothing about right or wrong.
settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--peer", choices=["ottla", "kafka"], default="ottla", help="which broker the tests judge")
    parser.addoption("--fleet", action="store_true", help="the tests of one broker against a fleet of three")
    parser.addoption("--kill-rounds", type=int, default=20, help="rounds of kill -9 under load, over all kill tests")
    parser.addoption("--mutated-requests", type=int, default=50_000, help="how many damaged requests a broker gets")
    parser.addoption("--mutated-logins", type=int, default=20_000, help="how many damaged logins and handshakes")
    parser.addoption("--mutation-seed", type=int, default=0, help="which ones; 0 for new ones")
    parser.addoption("--fault-minutes", type=float, default=3.0, help="how long a fleet under load is ill-treated")
    parser.addoption("--secure", action="store_true", help="the fleet of test_faults.py has TLS, SCRAM and ACLs")
    parser.addoption("--fire-minutes", type=float, default=2.0, help="how long exactly-once copies are under fire")
    parser.addoption("--copy-rounds", type=int, default=3, help="how often a guest joins and leaves copiers' groups")
    parser.addoption("--soak-minutes", type=float, default=60.0, help="how long a fleet is under mixed load")
    parser.addoption("--soak-heap", action="store_true", help="write what the brokers' heaps hold to bench/out")
