"""Choice of the maker of a run's planned steps, or the reason why its steps cannot be planned."""

from __future__ import annotations

from ....protocols.steps.charges import NotPlanned
from ....protocols.steps.single_steps import is_batched
from ...world.world import World
from .planned_batches import StepsInBatches
from .planned_each import StepsInTurn
from .planned_steps import PlannedSteps


def planned_steps(world: World) -> PlannedSteps:
    """Return the maker of a world's planned steps.

    Raises
    ------
    NotPlanned
        If its steps have to be made one by one.
    """
    protocol, kind = world.protocol, type(world.protocol)
    if world.watch is not None:
        raise NotPlanned("every step is watched")
    if world.one_by_one:
        raise NotPlanned(world.one_by_one)
    if world.sessions is None and world.in_rounds is None and world.traits.trigger == "message":
        raise NotPlanned(f"{kind.__name__} reacts to single messages that it is sent")
    if world.sessions is None and world.in_rounds is None and world.traits.inbox != "latest":
        raise NotPlanned(f"{kind.__name__} reads every message that it is sent")
    if not protocol.step_functions:
        raise NotPlanned(f"{kind.__name__} makes no steps")
    if protocol.picks_partners and "request" in protocol.step_functions:
        raise NotPlanned(f"{kind.__name__} picks partners by a method of its own")
    if protocol.decides:
        raise NotPlanned(f"{kind.__name__} decides by numbers what a step sends")
    if protocol.asks_for_budget and world.ledger.limited:
        raise NotPlanned(f"{kind.__name__} asks for its budget by numbers")
    if not world.layout.messages:
        raise NotPlanned(f"{kind.__name__} sends nothing")
    forms = {is_batched(function) for function in protocol.step_functions.values()}
    if len(forms) > 1:
        raise NotPlanned(f"{kind.__name__} has halves of exchanges in batches and others of single agents")
    return StepsInBatches(world) if forms == {True} else StepsInTurn(world)
