"""The registry of cache policies. Add one: a file beside this, one line here."""

import difflib
from dataclasses import fields
from typing import Any

from core.policies.base import CachePolicy, Plan, PolicyConfig
from core.policies.d2_cache import D2Cache
from core.policies.description import Description, describe
from core.policies.dkv_cache import DKVCache, DKVGreedy
from core.policies.dllm_cache import DLLMCache
from core.policies.elastic_cache import ElasticCache
from core.policies.entropy_cache import EntropyCache
from core.policies.fast_dllm import DualCache, PrefixCache
from core.policies.no_cache import NoCache
from core.policies.sparse_dllm import SparseDLLM

POLICIES: dict[str, type[CachePolicy]] = {
    policy.name: policy
    for policy in (
        NoCache,
        PrefixCache,
        DualCache,
        DKVCache,
        DKVGreedy,
        DLLMCache,
        D2Cache,
        ElasticCache,
        SparseDLLM,
        EntropyCache,
    )
}


def create_policy(name: str, **config: Any) -> CachePolicy:
    """The policy called `name` with its config fields; ValueError names what is unknown or not allowed."""
    if name not in POLICIES:
        raise ValueError(f"policy is {name!r}; allowed: {', '.join(POLICIES)}")
    policy = POLICIES[name]
    known = [field.name for field in fields(policy.Config)]
    for key in config:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            allowed = ", ".join(known) or "none, it has no settings"
            raise ValueError(f"policy {name} has no setting {key!r}{hint}; allowed: {allowed}")
    return policy(policy.Config(**config))


__all__ = [
    "POLICIES",
    "CachePolicy",
    "Description",
    "Plan",
    "PolicyConfig",
    "create_policy",
    "describe",
]
