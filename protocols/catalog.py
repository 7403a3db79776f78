"""Catalogue of protocols: shipped ones, installed plug-ins, those of a user's file, and classes given to ``run()``."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from ..agents.authors import check_overrides
from ..agents.errors import INTERRUPTED, HushnetError, InputError, words_of
from ..agents.suggestions import listed, suggestion
from .base import Protocol, ProtocolParameters
from .privacy.budget import PrintedNoise, Privacy
from .traits import Traits
from .user_files import is_file, load_object

GROUP = "hushnet.protocols"
"""Entry point group of installed plug-ins: ``my_protocol = "my_package.module:MyProtocol"``."""

NOISES = (Privacy, PrintedNoise)
"""Classes of the parameter ``privacy``."""
PROTOCOLS: dict[str, str] = {
    "ad_psgd": ".ad_psgd:AdPsgd",
    "choco_sgd": ".choco_sgd:ChocoSGD",
    "collaborative_admm": ".collaborative_admm:CollaborativeAdmm",
    "consensus_admm": ".consensus_admm:ConsensusAdmm",
    "coordinate_descent": ".coordinate_descent:CoordinateDescent",
    "dada": ".dada:Dada",
    "decentralised_sgd": ".decentralised_sgd:DecentralisedSGD",
    "divshare": ".divshare:DivShare",
    "dual_averaging": ".dual_averaging:DualAveraging",
    "edge_consensus_admm": ".edge_consensus_admm:EdgeConsensusAdmm",
    "epidemic_learning": ".epidemic_learning:EpidemicLearning",
    "extra": ".extra:Extra",
    "federated_averaging": ".federated_averaging:FederatedAveraging",
    "feature_sgd": ".feature_sgd:FeatureSgd",
    "feature_sharing": ".feature_sharing:FeatureSharing",
    "consensus": ".baselines:Consensus",
    "gossip_learning": ".gossip_learning:GossipLearning",
    "local": ".baselines:Local",
    "local_dp": ".local_dp:LocalDP",
    "local_dp_descent": ".local_dp_descent:LocalDPDescent",
    "gradient_tracking": ".gradient_tracking:GradientTracking",
    "model_propagation": ".model_propagation:ModelPropagation",
    "muffliato": ".muffliato:Muffliato",
    "nids": ".nids:Nids",
    "perturbed_admm": ".perturbed_admm:PerturbedAdmm",
    "push_sum_dual_averaging": ".push_sum_dual_averaging:PushSumDualAveraging",
    "random_walk_sgd": ".random_walk_sgd:RandomWalkSGD",
    "solitary": ".baselines:Solitary",
    "stochastic_gradient_push": ".stochastic_gradient_push:StochasticGradientPush",
    "stale_feature_sharing": ".stale_feature_sharing:StaleFeatureSharing",
}
"""Shipped protocols as ``module:Class`` of `hushnet.protocols.algorithms`, imported when they are asked for."""
ALGORITHMS = f"{__package__}.algorithms"


def names(extra: Mapping[str, type[Protocol]] | None = None) -> list[str]:
    """Every name that a scenario may give as ``kind``, apart from files."""
    plugins = [point.name for point in importlib.metadata.entry_points(group=GROUP)]
    return list(dict.fromkeys([*PROTOCOLS, *plugins, *(extra or {})]))


def resolve(
    kind: str,
    *,
    trust_code: bool = False,
    base: Path | None = None,
    extra: Mapping[str, type[Protocol]] | None = None,
) -> type[Protocol]:
    """The class that a scenario means by ``kind``: a name of `names`, or ``path/to/file.py:Class``.

    Files are relative to `base`, and run only if code is trusted; classes that were handed over from Python win over
    everything else. Raises `InputError` if there is no such protocol, or its code may not or cannot be loaded.
    """
    if extra and kind in extra:
        return _checked(extra[kind], kind)
    if kind in PROTOCOLS:
        return _shipped(PROTOCOLS[kind], kind)
    if is_file(kind):
        return _checked(load_object(kind, trust_code=trust_code, base=base), kind)
    plugins = importlib.metadata.entry_points(group=GROUP, name=kind)
    for plugin in plugins:
        return _checked(_loaded(plugin), kind)
    known = names(extra)
    raise InputError(f"unknown protocol{suggestion(kind, known)} admissible: {listed(known)}, ./file.py:Class")


def loadable() -> dict[str, type[Protocol]]:
    """The shipped and installed protocols by name; of a plug-in that cannot be loaded, a warning says so."""
    found = {}
    for name in names():
        try:
            found[name] = resolve(name)
        except HushnetError as error:
            warnings.warn(f"{name} is left out: {error}", stacklevel=2)
    return found


def describe() -> dict[str, str]:
    """One line about every protocol that is shipped or installed, by name: its parameters' or its own docstring's."""
    lines = {}
    for name in names():
        try:
            found = resolve(name)
            own = found.Parameters.__doc__ if found.Parameters is not ProtocolParameters else None
            lines[name] = inspect.cleandoc(own or found.__doc__ or "").partition("\n")[0]
        except HushnetError as error:
            lines[name] = f"(cannot be loaded: {error})"
    return lines


@cache
def _shipped(place: str, kind: str) -> type[Protocol]:
    """The class of ours at a place, ``module:Class``."""
    module, _, name = place.partition(":")
    return _checked(getattr(importlib.import_module(module, ALGORITHMS), name), kind)


def _loaded(plugin: importlib.metadata.EntryPoint) -> Any:
    try:
        return plugin.load()
    except INTERRUPTED:
        raise
    except BaseException as error:
        raise InputError(
            f"the installed plug-in {plugin.value} raises {type(error).__name__}: {words_of(error)}"
        ) from error


def _checked(found: Any, kind: str) -> type[Protocol]:
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise InputError(f"{kind} is not a subclass of hushnet.protocols.base.Protocol")
    if not (isinstance(found.Parameters, type) and issubclass(found.Parameters, ProtocolParameters)):
        raise InputError(f"{kind} has Parameters that are not a subclass of hushnet.protocols.base.ProtocolParameters")
    if not isinstance(found.traits, Traits):
        raise InputError(f"{kind} has traits that are {type(found.traits).__name__}; they must be Traits(...)")
    privacy = found.Parameters.model_fields.get("privacy")
    wrong = [] if privacy is None else [one for one in _classes(privacy.annotation) if not issubclass(one, NOISES)]
    if wrong:
        raise InputError(
            f"{kind}: the parameter privacy is {wrong[0].__name__}; it must be Privacy | None, or be renamed"
        )
    missing = sorted(found.__abstractmethods__) + ([] if found.has_start() else ["start"])
    if missing:
        raise InputError(f"{kind} is abstract; it has yet to define {', '.join(missing)}")
    check_overrides(found)
    return found


def _classes(annotation: Any) -> list[type]:
    """Classes of an annotation such as ``Privacy | None``, but for None."""
    inner = get_args(annotation)
    found = [one for part in inner for one in _classes(part)] if inner else [annotation]
    return [one for one in found if isinstance(one, type) and one is not type(None)]
