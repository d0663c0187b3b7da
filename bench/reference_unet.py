#!/usr/bin/env python3
"""Times dpg against the same network written plainly in PyTorch, in the same run on the same machine.

The network is guided-diffusion's (ADM) U-Net, built here from its description: float32, contiguous tensors,
eager autograd, as the authors' code runs it. What is timed is one `denoise + pull_back`: x_t -> clamped x0,
then the gradient of <x0, v> with respect to x_t.

    script/bootstrap --bench
    /usr/bin/python3 bench/reference_unet.py --ours build/release/bench/prior_bench

It needs Debian's python3-torch, which belongs to /usr/bin/python3; another python3 may come first in PATH.
Before timing, the network is checked: against --fixtures FOLDER (outputs and input gradients of reference
networks) and, with --dpg FILE, against `dpg model forward` with the prior that is timed.
"""
import argparse
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    sys.exit(f"reference_unet: {error}; run script/bootstrap --bench, then call /usr/bin/python3 with this file")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORK_GFLOP = 52.0  # multiply-adds of convolutions and attention, forward and input gradient, 128x128, batch 1


# ---- the network; attribute names are the checkpoint's keys

class GroupNorm32(nn.GroupNorm):
    def __init__(self, channels):
        super().__init__(32, channels)

    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)


def resample(x, how):
    if how == "down":
        return F.avg_pool2d(x, 2)
    return F.interpolate(x, scale_factor=2, mode="nearest") if how == "up" else x


class ResBlock(nn.Module):
    def __init__(self, channels, time_channels, out, scale_shift, how=None):
        super().__init__()
        self.scale_shift, self.how = scale_shift, how
        self.in_layers = nn.Sequential(GroupNorm32(channels), nn.SiLU(), nn.Conv2d(channels, out, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(time_channels, 2 * out if scale_shift else out))
        self.out_layers = nn.Sequential(GroupNorm32(out), nn.SiLU(), nn.Dropout(0.0),
                                        nn.Conv2d(out, out, 3, padding=1))
        self.skip_connection = nn.Identity() if out == channels else nn.Conv2d(channels, out, 1)

    def forward(self, x, embedding):
        norm, silu, conv = self.in_layers
        h = conv(resample(silu(norm(x)), self.how))
        embedding = self.emb_layers(embedding)[:, :, None, None]
        if self.scale_shift:
            scale, shift = embedding.chunk(2, dim=1)
            h = self.out_layers[1:](self.out_layers[0](h) * (1 + scale) + shift)
        else:
            h = self.out_layers(h + embedding)
        return self.skip_connection(resample(x, self.how)) + h


class Attention(nn.Module):
    def __init__(self, channels, heads, new_order):
        super().__init__()
        self.heads, self.new_order = heads, new_order
        self.norm = GroupNorm32(channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        n, channels, height, width = x.shape
        head = channels // self.heads
        flat = x.reshape(n, channels, height * width)
        qkv = self.qkv(self.norm(flat))
        if self.new_order:
            q, k, v = (part.reshape(n * self.heads, head, -1) for part in qkv.chunk(3, dim=1))
        else:
            q, k, v = qkv.reshape(n * self.heads, 3 * head, -1).split(head, dim=1)
        scale = 1 / math.sqrt(math.sqrt(head))
        weight = torch.softmax(torch.einsum("bct,bcs->bts", q * scale, k * scale).float(), dim=-1).type(qkv.dtype)
        mixed = torch.einsum("bts,bcs->bct", weight, v).reshape(n, channels, -1)
        return (flat + self.proj_out(mixed)).reshape(n, channels, height, width)


class Downsample(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.op = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x):
        return self.op(x)


class Upsample(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.conv(resample(x, "up"))


class Stage(nn.Sequential):
    def forward(self, x, embedding):
        for layer in self:
            x = layer(x, embedding) if isinstance(layer, ResBlock) else layer(x)
        return x


class UNet(nn.Module):
    """`config` has guided-diffusion's flag names, as in the sidecar JSON of a checkpoint."""

    def __init__(self, config):
        super().__init__()
        width = config["num_channels"]
        levels = [int(m) for m in config["channel_mult"].split(",")]
        blocks = config["num_res_blocks"]
        attended = {config["image_size"] // int(r) for r in config["attention_resolutions"].split(",")}
        time_channels = 4 * width
        scale_shift = config["use_scale_shift_norm"]
        head_width = config.get("num_head_channels", -1)
        self.width = width

        def residual(channels, out, how=None):
            return ResBlock(channels, time_channels, out, scale_shift, how)

        def attention(channels):
            heads = config["num_heads"] if head_width == -1 else channels // head_width
            return Attention(channels, heads, config.get("use_new_attention_order", False))

        def changed(channels, how):
            if config["resblock_updown"]:
                return residual(channels, channels, how)
            return Downsample(channels) if how == "down" else Upsample(channels)

        self.time_embed = nn.Sequential(nn.Linear(width, time_channels), nn.SiLU(),
                                        nn.Linear(time_channels, time_channels))
        channels, factor = levels[0] * width, 1
        self.input_blocks = nn.ModuleList([Stage(nn.Conv2d(3, channels, 3, padding=1))])
        skips = [channels]
        for level, multiple in enumerate(levels):
            for _ in range(blocks):
                stage = [residual(channels, multiple * width)]
                channels = multiple * width
                if factor in attended:
                    stage.append(attention(channels))
                self.input_blocks.append(Stage(*stage))
                skips.append(channels)
            if level + 1 < len(levels):
                self.input_blocks.append(Stage(changed(channels, "down")))
                skips.append(channels)
                factor *= 2
        self.middle_block = Stage(residual(channels, channels), attention(channels), residual(channels, channels))
        self.output_blocks = nn.ModuleList()
        for level, multiple in reversed(list(enumerate(levels))):
            for block in range(blocks + 1):
                stage = [residual(channels + skips.pop(), multiple * width)]
                channels = multiple * width
                if factor in attended:
                    stage.append(attention(channels))
                if level > 0 and block == blocks:
                    stage.append(changed(channels, "up"))
                    factor //= 2
                self.output_blocks.append(Stage(*stage))
        self.out = nn.Sequential(GroupNorm32(channels), nn.SiLU(),
                                 nn.Conv2d(channels, 6 if config["learn_sigma"] else 3, 3, padding=1))

    def forward(self, x, t):
        half = self.width // 2
        angles = t[:, None].float() * torch.exp(-math.log(10000) / half * torch.arange(half, dtype=torch.float32))
        embedding = self.time_embed(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1))
        skips, h = [], x
        for stage in self.input_blocks:
            h = stage(h, embedding)
            skips.append(h)
        h = self.middle_block(h, embedding)
        for stage in self.output_blocks:
            h = stage(torch.cat([h, skips.pop()], dim=1), embedding)
        return self.out(h)


def load(checkpoint):
    with open(os.path.splitext(checkpoint)[0] + ".json") as file:
        network = UNet(json.load(file))
    network.load_state_dict({name: tensor.float() for name, tensor in
                             torch.load(checkpoint, map_location="cpu").items()}, strict=True)
    return network.eval()


# ---- safetensors, as much as is needed here

NUMPY_TYPES = {"F32": numpy.float32, "I64": numpy.int64}


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            array = numpy.frombuffer(data[begin:end], NUMPY_TYPES[entry["dtype"]])
            tensors[name] = torch.from_numpy(array.copy()).reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- checks

def relative_error(a, b):
    return ((a - b).norm() / b.norm()).item()


def expect_equal(what, errors, limit):
    line = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    print(f"check  {what}: relative error of {line}")
    if not all(error <= limit for error in errors.values()):
        sys.exit(f"reference_unet: {what} differs by more than {limit}; a comparison of times would mean nothing")


def output_and_gradient(network, x, t, cotangent):
    x = x.clone().requires_grad_(True)
    output = network(x, t)
    return output.detach(), torch.autograd.grad(output, x, cotangent)[0]


def check_fixtures(folder):
    for name in ("adm-tiny", "ddpm-style", "new-attention"):
        io = read_safetensors(os.path.join(folder, name + ".io.safetensors"))
        output, gradient = output_and_gradient(load(os.path.join(folder, name + ".pt")), io["x"], io["t"],
                                               io["cotangent"])
        expect_equal(f"reference against fixture {name}",
                     {"output": relative_error(output, io["output"]),
                      "input gradient": relative_error(gradient, io["input_gradient"])}, 1e-4)


def check_ours(program, checkpoint, network, x, t):
    cotangent = torch.randn(network(x, torch.tensor([t])).shape)
    with tempfile.TemporaryDirectory() as folder:
        x_file, v_file, y_file = (os.path.join(folder, name + ".safetensors") for name in "xvy")
        write_safetensors(x_file, {"x": x})
        write_safetensors(v_file, {"cotangent": cotangent})
        subprocess.run([program, "model", "forward", "--model", checkpoint, "--in", x_file, "--t", str(t),
                        "--cotangent", v_file, "--out", y_file, "--precision", "fp32"], check=True)
        ours = read_safetensors(y_file)
    output, gradient = output_and_gradient(network, x, torch.tensor([t]), cotangent)
    expect_equal("dpg model forward against reference",
                 {"output": relative_error(ours["output"], output),
                  "input gradient": relative_error(ours["input_gradient"], gradient)}, 1e-4)


# ---- times

def denoise_and_pull_back(network, x_t, t, v):
    abar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64), 0)[t].item()
    x_t = x_t.clone().requires_grad_(True)
    eps = network(x_t, torch.tensor([t]))[:, :3]
    x0 = ((x_t - math.sqrt(1 - abar) * eps) / math.sqrt(abar)).clamp(-1, 1)
    return torch.autograd.grad(x0, x_t, v)[0]


def times_of(function, repeats):
    """Median and fastest, in ms."""
    function()  # the first call also plans and allocates
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times), min(times)


def our_times(program):
    """(median, fastest) in ms by "BM_Name/precision", and the work of one bare convolution in GFLOP."""
    answer = subprocess.run([program, "--benchmark_filter=BM_(DenoisePullBack|Convolution)/(fp32|bf16)/",
                             "--benchmark_format=json"], check=True, stdout=subprocess.PIPE).stdout
    found = {}
    for entry in json.loads(answer)["benchmarks"]:  # run_name: BM_Name/precision/repeats:9/real_time
        name = "/".join(entry["run_name"].split("/")[:2])
        found.setdefault(name, {})[entry.get("aggregate_name")] = entry
    convolution = found["BM_Convolution/fp32"]["median"]
    gflop = convolution["GFLOP/s"] * convolution["real_time"] / 1e3
    return {name: (of["median"]["real_time"], of["min"]["real_time"]) for name, of in found.items()}, gflop


def print_table(reference, ours, convolution_gflop):
    """Times over the floor are of fastest runs, which other programs disturb least; so is the speed-up."""
    print(f"\n{'denoise + pull_back, 128x128, batch 1':<42}{'median ms':>10}{'fastest ms':>11}{'of floor':>10}"
          f"{'speed-up':>10}")

    def row(name, times, floor, speed_up):
        of_floor = f"{times[1] / floor[1]:.2f}" if floor else ""
        ratio = f"{reference[1] / times[1]:.2f}" if speed_up else ""
        print(f"{name:<42}{times[0]:>10.1f}{times[1]:>11.1f}{of_floor:>10}{ratio:>10}")

    floors = {}
    for precision in ("fp32", "bf16") if ours else ():
        floors[precision] = [NETWORK_GFLOP / convolution_gflop * ms for ms in ours[f"BM_Convolution/{precision}"]]
        row(f"floor {precision}: {NETWORK_GFLOP:.0f} GFLOP as bare convolutions", floors[precision], None, False)
    row(f"reference, PyTorch {torch.__version__}, fp32", reference, floors.get("fp32"), True)
    for precision in floors:
        row(f"dpg {precision}", ours[f"BM_DenoisePullBack/{precision}"], floors[precision], True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=os.path.join(ROOT, "priors", "faces128.pt"), help="checkpoint to time")
    parser.add_argument("--ours", metavar="PROGRAM", help="dpg's benchmark, e.g. build/release/bench/prior_bench")
    parser.add_argument("--dpg", metavar="PROGRAM", help="dpg itself: check that both compute the same")
    parser.add_argument("--fixtures", metavar="FOLDER", help="reference tensors to check this network against")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    if arguments.fixtures:
        check_fixtures(arguments.fixtures)
    network = load(arguments.model)
    x, v = torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)
    if arguments.dpg:
        check_ours(arguments.dpg, arguments.model, network, x, 500)
    ours, convolution_gflop = {}, 0
    if arguments.ours:
        os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # the same for both
        ours, convolution_gflop = our_times(arguments.ours)
    reference = times_of(lambda: denoise_and_pull_back(network, x, 500, v), arguments.repeats)
    print_table(reference, ours, convolution_gflop)


if __name__ == "__main__":
    main()
