"""Options that the commands share, and what they are turned into: configs, prompts, a place to write."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from analysis.cli.errors import UsageError, checking
from analysis.cli.files import check_apart, check_folder, write_whole
from analysis.cli.symbols import given_setting, given_settings
from analysis.prompts import Prompt, distinct, family_prompts, prompts_text, read_prompts
from analysis.settings import Setting, parse_settings, split_settings
from core import (
    POLICIES,
    UNMASK_RULES,
    CachePolicy,
    GenerationConfig,
    LanguageModel,
    command_line,
    create_policy,
)
from core.files import check_writable
from core.training.problems import FAMILIES, MOST_PROBLEMS

__all__ = [
    "Parser",
    "UsageError",
    "add_common_options",
    "add_markdown_option",
    "check_apart",
    "check_fit",
    "check_folder",
    "check_writable",
    "checking",
    "generation_config",
    "policy_of",
    "policy_settings",
    "prompts_of",
    "require_at_least",
    "require_different",
    "warn",
    "warn_alike",
    "warn_unread",
    "write_whole",
]

DTYPE_HELP = (
    "auto, float32, bfloat16 or float16 (auto: bfloat16 on CUDA, and on a CPU where a short timing finds it "
    "faster, else float32; tokens can differ between them)"
)
OF_ONE_POLICY = "generation settings, and the policy's where --policies names a single one"
PROBLEMS = 32
# Of more threads, OpenMP ends the process without a word.
MOST_THREADS = 1024
MOST_REPEATS = 10_000
GENERATION_OPTIONS = ("gen_length", "block_length", "unmask", "threshold", "steps", "temperature", "seed")


class Parser(command_line.Parser):
    """Its errors are those of the command line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def add_common_options(
    parser: argparse.ArgumentParser,
    policy: bool = True,
    prompts: bool = True,
    settings: str = "policy settings and generation settings",
    **usual: str,
) -> None:
    """The options of the README's table; `policy` and `prompts` leave out what a command does not take.

    settings: what the command's --set takes, in words. usual: the command's own gen_length, unmask or steps
    in place of the engine's, as its help tells them.
    """
    parser.add_argument("--model", default="embedded", help="embedded, a folder, or a hub id (embedded)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--dtype", default="auto", help=DTYPE_HELP)
    if policy:
        parser.add_argument("--policy", default="entropy", help=f"{', '.join(POLICIES)} (entropy)")
    parser.add_argument(
        "--set",
        dest="settings",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help=f"{settings}; a value is a number, a word, true, false, none or inf",
    )
    if prompts:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--prompt", help="prompt text")
        source.add_argument("--prompt-ids", help="prompt as token ids: 1,2,3")
        source.add_argument("--prompts", type=Path, metavar="FILE.jsonl", help="one JSON object a line")
        source.add_argument(
            "--family",
            metavar="NAME,...",
            help=f"held-out problems of the families the embedded model learned: {', '.join(FAMILIES)}",
        )
        parser.add_argument("--n", type=int, help=f"problems of each family ({PROBLEMS})")
        parser.add_argument("--limit", type=int, help="use only the first LIMIT prompts")
    default = GenerationConfig()
    length, block = usual.get("gen_length", default.gen_length), default.block_length
    many = f"a multiple of block-length ({block}), or shorter than {block}"
    parser.add_argument("--gen-length", type=int, help=f"tokens to generate, {many} ({length})")
    parser.add_argument(
        "--block-length",
        type=int,
        help=f"decoding window, which gen-length must be a multiple of ({block}, at most gen-length)",
    )
    rules, rule = ", ".join(UNMASK_RULES), usual.get("unmask", default.unmask)
    parser.add_argument("--unmask", help=f"commit rule: {rules} ({rule})")
    parser.add_argument("--threshold", type=float, help=f"confidence to commit at ({default.threshold})")
    parser.add_argument(
        "--steps", type=int, help=f"denoising steps of quota and klass ({usual.get('steps', 'gen-length')})"
    )
    parser.add_argument("--temperature", type=float, help=f"0 is greedy ({default.temperature:g})")
    parser.add_argument("--seed", type=int, help=f"seed of every request ({default.seed})")


def add_markdown_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print tables to paste into a document")


def generation_config(arguments: argparse.Namespace, **usual: Any) -> GenerationConfig:
    """The generation settings that options and --set ask for, `usual` where neither does.

    Raises ValueError for bad ones.
    """
    given = given_settings(arguments.settings)
    policy, config = split_settings(getattr(arguments, "policy", ""), given)
    if policy and not hasattr(arguments, "policy") and len(getattr(arguments, "policies", ())) != 1:
        raise UsageError(
            f"--set {next(iter(policy))}: no decoding setting; give a policy's as NAME:KEY=VALUE"
        )
    for name in GENERATION_OPTIONS:
        value = getattr(arguments, name)
        if value is not None:
            if name in config:
                raise UsageError(f"{name} is given both as an option and in --set")
            config[name] = value
    config = {**usual, **config}
    length, block = config.get("gen_length"), GenerationConfig().block_length
    if isinstance(length, int) and 0 < length < block:
        config.setdefault("block_length", length)
    return GenerationConfig(**config)


def warn_unread(
    arguments: argparse.Namespace, base: GenerationConfig, settings: Sequence[Setting] = ()
) -> None:
    """Say on standard error which decoding settings were asked for and have no effect beside the others.

    Of the measurement's own, those that none of its settings reads; of a setting's, those that it does not.
    """
    asked = {name for name in GENERATION_OPTIONS if getattr(arguments, name) is not None}
    asked |= parse_settings(arguments.settings).keys()
    unread = [setting.decoding(base).unread for setting in settings]
    for name, reader in base.unread.items():
        if name in asked and all(name in names for names in unread):
            warn(f"{name} is {getattr(base, name)}, which has no effect without {reader}")
    for setting, names in zip(settings, unread, strict=True):
        for name in [name for name in setting.generation if name in names]:
            warn(f"{setting.label}: {name} has no effect without {names[name]}")


def warn_alike(prompts: Sequence[Prompt]) -> None:
    """Say on standard error where prompts repeat one another, but for their wording."""
    if len(distinct(prompts)) < len(prompts):
        warn(f"{prompts_text(prompts)}; intervals take the others for prompts of their own")


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def settings_of(arguments: argparse.Namespace) -> list[Setting]:
    """The settings that --policies names; where it is one, the policy's part of --set is that one's.

    Raises ValueError for a bad one.
    """
    wanted = [given_setting(text) for text in arguments.policies]
    own, _ = split_settings("", parse_settings(arguments.settings))
    if len(wanted) != 1 or not own:
        return wanted
    twice = own.keys() & wanted[0].config.keys()
    if twice:
        raise UsageError(f"{min(twice)} is given both with the policy and in --set")
    return [Setting(wanted[0].policy, {**wanted[0].config, **own}, wanted[0].generation)]


def policy_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The policy's part of --set, not yet checked."""
    return split_settings(arguments.policy, parse_settings(arguments.settings))[0]


def policy_of(arguments: argparse.Namespace) -> CachePolicy:
    """The policy that --policy and --set ask for. Raises ValueError for an unknown name or setting."""
    return create_policy(arguments.policy, **policy_settings(arguments))


def prompts_of(arguments: argparse.Namespace) -> list[Prompt]:
    """The prompts asked for. Raises ValueError for empty or malformed ones, or a file that can't be read."""
    if arguments.limit is not None:
        require_at_least("--limit", arguments.limit, 1)
    if arguments.n is not None and arguments.family is None:
        raise UsageError("--n counts the problems of a family; give --family with it, or --limit")
    if arguments.family is not None:
        number = PROBLEMS if arguments.n is None else arguments.n
        require_at_least("--n", number, 1, MOST_PROBLEMS)
        names = [name.strip() for name in arguments.family.split(",")]
        require_different("--family", names)
        return family_prompts(names, number)[: arguments.limit]
    if arguments.prompts is not None:
        try:
            return read_prompts(arguments.prompts)[: arguments.limit]
        except OSError as error:
            raise UsageError(f"prompts file {arguments.prompts}: {error.strerror}") from None
    if arguments.prompt_ids is not None:
        try:
            return [Prompt(tuple(int(part) for part in arguments.prompt_ids.split(",")))]
        except ValueError:
            raise UsageError(f"--prompt-ids {arguments.prompt_ids!r}; allowed: integers, 1,2,3") from None
    if not arguments.prompt.strip():
        raise UsageError("prompt is empty; give some text or token ids")
    return [Prompt(arguments.prompt)]


def require_at_least(option: str, value: int, least: int, most: int | None = None) -> None:
    """Raise UsageError for a number below what an option allows, or above it where `most` is given."""
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"{least} to {most}"
        raise UsageError(f"{option} is {value}; allowed: {allowed}")


def require_different(option: str, values: Sequence[object]) -> None:
    """Raise UsageError where an option names something twice: it would be measured twice and shown once."""
    for index, value in enumerate(values):
        if value in values[:index]:
            raise UsageError(f"{option} names {value} twice")


def check_fit(model: LanguageModel, prompts: Sequence[Prompt], generation: GenerationConfig) -> None:
    """Raise ValueError for a prompt that the engine would refuse, before the first one is decoded."""
    for index, prompt in enumerate(prompts):
        try:
            model.encode(prompt.content, generation.gen_length)
        except ValueError as error:
            raise UsageError(f"prompt {index}: {error}") from None
