#!/usr/bin/env python3
"""Times one diffusion step of DPS and DPG as plain PyTorch, written from the papers: the baseline of `dpg bench --gpu`.

    python3 bench/official_step.py [--networks ffhq,imagenet] [--steps 20]

Eager fp32 with TF32 convolutions, batch 1, 256x256, random weights; noise samples are drawn and stored whole, blurs are
convolutions with a 61x61 kernel. Prints milliseconds a step and the peak of GPU memory.
"""
import argparse
import math
import sys
import time

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    sys.exit(f"official_step: {error}")

from reference_unet import UNet

COMMON = {"image_size": 256, "channel_mult": "1,1,2,2,4,4", "num_head_channels": 64, "num_heads": 4, "learn_sigma": True,
          "resblock_updown": True, "use_scale_shift_norm": True}
NETWORKS = {
    "ffhq": {**COMMON, "num_channels": 128, "num_res_blocks": 1, "attention_resolutions": "16"},
    "imagenet": {**COMMON, "num_channels": 256, "num_res_blocks": 2, "attention_resolutions": "32,16,8"},
}


def downsample(x):
    return F.avg_pool2d(x, 4)


def gaussian_blur(x):
    side = torch.arange(-30, 31, device=x.device, dtype=x.dtype)
    line = torch.exp(-side ** 2 / (2 * 3.0 ** 2))
    kernel = torch.outer(line, line)
    kernel = (kernel / kernel.sum()).expand(3, 1, 61, 61)
    return F.conv2d(F.pad(x, (30, 30, 30, 30), mode="reflect"), kernel, groups=3)


def mask_box(x):
    keep = torch.ones_like(x[:1, :1])
    keep[..., 64:192, 64:192] = 0
    return x * keep


class Sampler:
    """The ancestral step of DDPM with the learned variance, and Tweedie's estimate."""

    def __init__(self, network):
        self.network = network
        beta = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)
        self.beta = beta
        self.abar = torch.cumprod(1 - beta, 0)

    def estimate(self, x, t):
        output = self.network(x, torch.tensor([t], device=x.device))
        eps, fraction = output.chunk(2, dim=1)
        abar = self.abar[t].item()
        return ((x - math.sqrt(1 - abar) * eps) / math.sqrt(abar)).clamp(-1, 1), fraction

    def advance(self, x, x0, fraction, t):
        abar, before, beta = self.abar[t].item(), self.abar[t - 1].item(), self.beta[t].item()
        mean = (math.sqrt(before) * beta * x0 + math.sqrt(1 - beta) * (1 - before) * x) / (1 - abar)
        low = math.log(beta * (1 - before) / (1 - abar))
        log_variance = low + (fraction + 1) / 2 * (math.log(beta) - low)
        return mean + torch.exp(0.5 * log_variance) * torch.randn_like(x)


def dps_step(sampler, x, t, y, operator):
    x = x.detach().requires_grad_(True)
    x0, fraction = sampler.estimate(x, t)
    norm = torch.linalg.norm(y - operator(x0))
    gradient = torch.autograd.grad(norm, x)[0]
    return (sampler.advance(x, x0, fraction, t) - gradient).detach()


def dpg_step(sampler, x, t, y, operator, samples):
    x = x.detach().requires_grad_(True)
    x0, fraction = sampler.estimate(x, t)
    with torch.no_grad():
        scale = torch.sum((y - operator(x0)) ** 2)
        radius = torch.sqrt(scale / x0.numel()) / 2
        noise = torch.randn((samples, *x0.shape[1:]), device=x.device)
        losses = torch.sum((y - operator(x0 + radius * noise)) ** 2, dim=(1, 2, 3))
        rewards = torch.exp(-(losses - losses.min()) / scale)
        rewards = rewards - (rewards.sum() - rewards) / (samples - 1)
        direction = torch.einsum("n,nchw->chw", rewards, noise)[None] / samples / radius
    gradient = torch.autograd.grad(x0, x, direction)[0]
    moved = sampler.advance(x, x0, fraction, t)
    return (moved + 60 * sampler.beta[t].item() * gradient / gradient.norm()).detach()


def milliseconds(step, steps):
    x = torch.randn(1, 3, 256, 256, device="cuda")
    for t in range(999, 994, -1):
        x = step(x, t)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    for k in range(steps):
        x = step(x, 990 - k)
        x[0, 0, 0, 0].item()  # the loss is printed at each step
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin) / steps, torch.cuda.max_memory_allocated() / 2 ** 30


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="ffhq,imagenet")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("official_step: no GPU here")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(1)
    torch.set_default_device("cuda")
    picture = torch.rand(1, 3, 256, 256) * 2 - 1
    for name in arguments.networks.split(","):
        network = UNet(NETWORKS[name]).eval()
        sampler = Sampler(network)
        columns = {
            "DPS, SR x4": (dps_step, downsample, ()),
            "DPG, SR x4, N 500": (dpg_step, downsample, (500,)),
            "DPG, Gaussian 61x61, N 500": (dpg_step, gaussian_blur, (500,)),
            "DPG, inpainting, N 5000": (dpg_step, mask_box, (5000,)),
        }
        for column, (step, operator, extra) in columns.items():
            y = operator(picture) + 0.05 * torch.randn_like(operator(picture))
            ms, memory = milliseconds(lambda x, t: step(sampler, x, t, y, operator, *extra), arguments.steps)
            print(f"{name:<10}{column:<30}{ms:8.1f} ms a step{memory:8.1f} GiB", flush=True)


if __name__ == "__main__":
    main()
