#!/usr/bin/env python3
"""Makes the weight files of the learned metrics from your own PyTorch installation.

    python3 tools/export_metric_weights.py                     # everything that can be made
    python3 tools/export_metric_weights.py --only alex --out DIR

Files, where dpg looks for them by default (or in DIR, to be named with --weights DIR or $DPG_WEIGHTS):

    lpips_squeeze_v0.1.safetensors, lpips_alex_v0.1.safetensors, lpips_vgg_v0.1.safetensors
        from the package `lpips`; or from torchvision and the heads of the LPIPS repository, --heads DIR
        with squeeze.pth, alex.pth, vgg.pth
    inception_fid.safetensors
        the Inception network of the standard FID, from the package `pytorch-fid`
    inception_torchvision.safetensors
        torchvision's Inception v3, where there is no `pytorch-fid`. Distances in its features are not
        the standard FID

torch is needed; what else is missing is said, and the rest is made. The packages may download weights.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import struct
import sys

# Where LPIPS cuts each classifier's `features`: the first index of every slice but the first.
CLASSIFIERS = {
    "squeeze": ("squeezenet1_1", [2, 5, 8, 10, 11, 12], 13),
    "alex": ("alexnet", [2, 5, 8, 10], 12),
    "vgg": ("vgg16", [4, 9, 16, 23], 30),
}
SHIFT = [-0.030, -0.088, -0.188]
SCALE = [0.458, 0.448, 0.450]


class Unavailable(Exception):
    """What is missing, in words."""


def write_safetensors(path, tensors, metadata):
    """tensors: (name, type such as "F32", shape, bytes), little-endian and row by row.

    The format: the header's length in 8 bytes, the header as JSON, the data without gaps.
    """
    header, offset = {"__metadata__": metadata}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)  # so that the data begins at a multiple of 8
    unfinished = path.with_name(path.name + ".partial")
    with open(unfinished, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, _, _, data in tensors:
            file.write(data)
    os.replace(unfinished, path)


def as_written(name, tensor):
    import torch

    tensor = tensor.detach().to("cpu", torch.float32).contiguous()
    return name, "F32", tuple(tensor.shape), ctypes.string_at(tensor.data_ptr(), 4 * tensor.numel())


def floating(state):
    """Without counters, in the order of their names."""
    return [as_written(name, tensor) for name, tensor in sorted(state.items()) if tensor.is_floating_point()]


def pretrained(models, name):
    """A torchvision model with its weights, by the newer or the older way of asking for them."""
    build = getattr(models, name)
    try:
        return build(weights="IMAGENET1K_V1")
    except TypeError:
        return build(pretrained=True)


def lpips_from_package(net):
    import lpips

    # The constructor takes the heads from the package and the classifier from torchvision.
    model = lpips.LPIPS(net=net, version="0.1", verbose=False)
    wanted = re.compile(r"(net\.slice\d+|lin\d+|scaling_layer)\.")
    return {name: tensor for name, tensor in model.state_dict().items() if wanted.match(name)}


def lpips_state(net, heads, features):
    """The names of the package for: the heads' file, and the state of a classifier's `features`."""
    import torch

    _, cuts, end = CLASSIFIERS[net]
    state = {name: tensor for name, tensor in heads.items() if re.match(r"lin\d+\.", name)}
    for name, tensor in features.items():
        index = int(name.split(".")[0])
        if index < end:
            state["net.slice%d.%s" % (1 + sum(index >= cut for cut in cuts), name)] = tensor
    state["scaling_layer.shift"] = torch.tensor(SHIFT).view(1, 3, 1, 1)
    state["scaling_layer.scale"] = torch.tensor(SCALE).view(1, 3, 1, 1)
    return state


def lpips_from_heads(net, folder):
    import torch
    import torchvision

    heads = torch.load(folder / (net + ".pth"), map_location="cpu")
    model = pretrained(torchvision.models, CLASSIFIERS[net][0])
    return lpips_state(net, heads, model.features.state_dict())


def export_lpips(net, out, heads):
    if heads:
        try:
            state = lpips_from_heads(net, heads)
        except ImportError as error:
            raise Unavailable("--heads needs torchvision (%s)" % error)
    else:
        try:
            state = lpips_from_package(net)
        except ImportError as error:
            raise Unavailable("the package lpips is not installed (%s); install it, or give --heads DIR" % error)
    path = out / ("lpips_%s_v0.1.safetensors" % net)
    write_safetensors(path, floating(state), {"origin": "LPIPS v0.1, net " + net})
    return path


def export_inception(out):
    try:
        from pytorch_fid.inception import fid_inception_v3

        state, name, origin = fid_inception_v3().state_dict(), "inception_fid", "pytorch-fid"
    except ImportError:
        try:
            import torchvision
        except ImportError:
            raise Unavailable("neither pytorch-fid nor torchvision is installed")
        print("pytorch-fid is not installed: torchvision's Inception instead, which does not give the standard FID")
        state = pretrained(torchvision.models, "inception_v3").state_dict()
        name, origin = "inception_torchvision", "torchvision inception_v3; not the network of the standard FID"
    path = out / (name + ".safetensors")
    write_safetensors(path, floating(state), {"origin": origin})
    return path


def default_folder():
    data = os.environ.get("XDG_DATA_HOME", "")
    base = pathlib.Path(data) if os.path.isabs(data) else pathlib.Path.home() / ".local" / "share"
    return base / "dpg" / "weights"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=default_folder(), metavar="DIR")
    parser.add_argument("--only", choices=[*CLASSIFIERS, "inception"], action="append", help="may be given again")
    parser.add_argument("--heads", type=pathlib.Path, metavar="DIR", help="folder with the LPIPS heads")
    options = parser.parse_args()
    if sys.byteorder != "little":
        sys.exit("this tool writes the machine's own byte order, and the files must be little-endian")
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.exit("PyTorch is not installed for this Python; run the tool with one that has it")

    options.out.mkdir(parents=True, exist_ok=True)
    missing = 0
    for what in options.only or [*CLASSIFIERS, "inception"]:
        try:
            if what == "inception":
                path = export_inception(options.out)
            else:
                path = export_lpips(what, options.out, options.heads)
            print("wrote", path)
        except (Unavailable, OSError, RuntimeError) as error:  # not installed, no file, no download
            print("%s: not made: %s" % (what, error), file=sys.stderr)
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
