"""One run of gossipy, in a Python that has it: ``python peers_gossipy.py WORLD.npz RESULT.npz ROUNDS SEED``.

It is written as gossipy's own examples are: nodes, a handler of a torch model, a simulator with a report. The file of
the world has rows, labels, offsets, an adjacency matrix and a few numbers, that of the result models, updates and time.
"""

# pyright: reportMissingImports=false

import sys
import time
import types

import numpy as np

TICKS = 100
"""Time steps of gossipy in a unit of time, as in its examples."""


def stand_in_for_torchvision() -> None:
    """Gossipy imports torchvision for data sets that are not used here, without asking for it when it is installed."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        sys.modules["torchvision"] = types.ModuleType("torchvision")


def main(world_file: str, result_file: str, rounds: str, seed: str) -> None:
    """Build a world, run it, and save what came of it."""
    stand_in_for_torchvision()
    import torch
    from gossipy import set_seed
    from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork, UniformDelay
    from gossipy.data import DataDispatcher
    from gossipy.data.handler import ClassificationDataHandler
    from gossipy.model.handler import TorchModelHandler
    from gossipy.model.nn import LogisticRegression
    from gossipy.node import GossipNode
    from gossipy.simul import GossipSimulator, SimulationReport

    class Counting(TorchModelHandler):
        """Counts its updates, which gossipy itself only knows by model."""

        made = 0

        def _update(self, data):
            Counting.made += 1
            super()._update(data)

    torch.set_num_threads(1)
    set_seed(int(seed))
    world = np.load(world_file)
    offsets, numbers = world["offsets"], {name: float(world[name]) for name in ("step_size", "decay", "delay", "loss")}
    agents = len(offsets) - 1
    rows, labels = torch.tensor(world["features"]).float(), torch.tensor((world["labels"] > 0).astype(np.int64))
    data = DataDispatcher(
        ClassificationDataHandler(rows, labels, test_size=0), n=agents, eval_on_user=False, auto_assign=False
    )
    data.set_assignments([list(range(offsets[i], offsets[i + 1])) for i in range(agents)], None)
    # Two outputs whose difference is the score: it moves by twice the step of either.
    handler = Counting(
        net=LogisticRegression(rows.shape[1], 2),
        optimizer=torch.optim.SGD,
        optimizer_params={"lr": numbers["step_size"] / 2, "weight_decay": 2 * numbers["decay"]},
        criterion=torch.nn.CrossEntropyLoss(),
        batch_size=0,
        create_model_mode=CreateModelMode.MERGE_UPDATE,
    )
    nodes = GossipNode.generate(
        data_dispatcher=data,
        p2p_net=StaticP2PNetwork(agents, world["adjacency"]),
        model_proto=handler,
        round_len=TICKS,
        sync=False,
    )
    simulator = GossipSimulator(
        nodes=nodes,
        data_dispatcher=data,
        delta=TICKS,
        protocol=AntiEntropyProtocol.PUSH_PULL,
        delay=UniformDelay(0, int(2 * TICKS * numbers["delay"])),
        drop_prob=numbers["loss"],
    )
    simulator.add_receiver(SimulationReport())
    simulator.init_nodes(seed=int(seed))
    Counting.made = 0
    began = time.process_time()
    simulator.start(n_rounds=int(rounds))
    seconds = time.process_time() - began
    layers = [nodes[i].model_handler.model.model for i in range(agents)]
    models = np.array([(layer.weight[1] - layer.weight[0]).detach().numpy() for layer in layers])
    shifts = np.array([float(layer.bias[1] - layer.bias[0]) for layer in layers])
    np.savez(result_file, models=models, shifts=shifts, updates=Counting.made, seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
