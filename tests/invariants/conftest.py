"""Parameters of the invariants: every registered policy, whatever it is, in every family."""

import pytest

from core import POLICIES, CachePolicy
from tests.invariants.runs import eager_policy


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "policy_name" in metafunc.fixturenames:
        names = [name for name in POLICIES if POLICIES[name].lossless is not None]
        wanted = names if metafunc.function.__name__.startswith("test_lossless") else list(POLICIES)
        metafunc.parametrize("policy_name", wanted)


@pytest.fixture
def policy(policy_name: str) -> CachePolicy:
    """The policy with settings that mix full and partial passes."""
    return eager_policy(policy_name)
