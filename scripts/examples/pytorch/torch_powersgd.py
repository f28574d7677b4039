"""PyTorch's own PowerSGD hook, with bytes and predicted seconds as the hooks of thinwire.ddp."""

import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

import thinwire.ddp


class TorchPowerSgd:
    """PyTorch's own hook. bytes_sent: as rings send the elements that it counts. Its messages are
    as long as those of Thinwire's, so that the predicted seconds are the same."""

    def __init__(self, model, optimizer, settings):
        self.state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=settings["powersgd.rank"],
            start_powerSGD_iter=settings["powersgd.start"])
        model.register_comm_hook(self.state, powerSGD_hook.powerSGD_hook)
        self.whole = sum(p.numel() for p in model.parameters())
        self.seconds = thinwire.ddp.LocalSteps(model.module, optimizer, 1, "powersgd",
                                               set=settings).seconds

    @property
    def bytes_sent(self):
        dense = min(self.state.iter, self.state.start_powerSGD_iter)
        elements = dense * self.whole + self.state.total_numel_after_compression
        return 8 * (1 - 1 / dist.get_world_size()) * elements
