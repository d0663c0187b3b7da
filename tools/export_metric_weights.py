#!/usr/bin/env python3
"""Makes the weight files of the learned metrics from your own PyTorch installation.

    python3 tools/export_metric_weights.py                     # everything that can be made
    python3 tools/export_metric_weights.py --only alex --out DIR

Files, where dpg looks for them by default (or in DIR, to be named with --weights DIR or $DPG_WEIGHTS):

    lpips_squeeze_v0.1.safetensors, lpips_alex_v0.1.safetensors, lpips_vgg_v0.1.safetensors
        from the package `lpips`; or from torchvision and the heads of the LPIPS repository, --heads DIR
        with squeeze.pth, alex.pth, vgg.pth
    fid_inception.safetensors
        the Inception network of the standard FID and KID, from the package `pytorch-fid`, or from the file it
        downloads, --fid-file pt_inception-2015-12-05-6726825d.pth (dpg also reads that file itself).
        torchvision's Inception v3 is another network, and is not taken in its place
    googlenet_bvlc.safetensors
        the network of FD-googlenet and KD-googlenet, from bvlc_googlenet.caffemodel of the Caffe model zoo,
        --caffemodel FILE. Needs neither Caffe nor torch

Else torch is needed; what is missing is said, and the rest is made. The packages may download weights.
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


def export_inception(out, file):
    import torch

    if file:
        state = torch.load(file, map_location="cpu")
    else:
        try:
            from pytorch_fid.inception import fid_inception_v3
        except ImportError as error:
            raise Unavailable("the package pytorch-fid is not installed (%s); install it, or give --fid-file" % error)
        state = fid_inception_v3().state_dict()
    # The classifier comes after the features.
    features = {name: tensor for name, tensor in state.items() if not name.startswith("fc.")}
    path = out / "fid_inception.safetensors"
    write_safetensors(path, floating(features), {"origin": "FID's Inception, pt_inception-2015-12-05"})
    return path


def protobuf_fields(data):
    """(number, value) for each field of a protobuf message; value: an int, or the bytes of a longer one."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data):
                raise Unavailable("it is cut short, or no protobuf file")
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        if kind not in (1, 2, 5):
            raise Unavailable("it is no protobuf file, or a damaged one")
        size = varint() if kind == 2 else 8 if kind == 1 else 4
        if at + size > len(data):
            raise Unavailable("it is cut short, or no protobuf file")
        yield key >> 3, data[at : at + size]
        at += size


def caffe_blob(data):
    """Shape and float32 bytes of a BlobProto. The numbers of a blob may come in one piece or one by one."""
    old_shape, shape, values = {}, None, bytearray()
    for number, value in protobuf_fields(data):
        if number in (1, 2, 3, 4):  # num, channels, height, width
            old_shape[number] = value
        elif number == 5:  # data
            values += value
        elif number == 7:  # shape: packed, or one dimension at a time
            shape = []
            for field, dims in protobuf_fields(value):
                if field == 1:
                    shape += [dims] if isinstance(dims, int) else packed_varints(dims)
    if shape is None:
        shape = [old_shape.get(i, 1) for i in (1, 2, 3, 4)]
    return shape, bytes(values)


def packed_varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def caffe_layers(data):
    """(name, blobs) for each layer of a NetParameter: field 2 in the older form, 100 in the newer."""
    for number, layer in protobuf_fields(data):
        if number not in (2, 100) or isinstance(layer, int):
            continue
        name_field, blob_field = (4, 6) if number == 2 else (1, 7)
        fields = list(protobuf_fields(layer))
        names = [value.decode("utf-8") for field, value in fields if field == name_field]
        yield names[0] if names else "", [caffe_blob(value) for field, value in fields if field == blob_field]


def export_googlenet(out, caffemodel):
    if not caffemodel:
        raise Unavailable("--caffemodel FILE names no bvlc_googlenet.caffemodel")
    tensors = []
    for name, blobs in caffe_layers(caffemodel.read_bytes()):
        if len(blobs) != 2 or name.startswith("loss"):  # layers without weights; the classifiers
            continue
        (shape, weight), (_, bias) = blobs
        if len(weight) != 4 * shape[0] * shape[1] * shape[2] * shape[3] or len(bias) != 4 * shape[0]:
            raise Unavailable("layer %s has numbers missing" % name)
        tensors.append((name + "/weight", "F32", shape, weight))
        tensors.append((name + "/bias", "F32", [shape[0]], bias))
    if not tensors:
        raise Unavailable("%s holds no convolutions" % caffemodel)
    path = out / "googlenet_bvlc.safetensors"
    write_safetensors(path, tensors, {"origin": "BVLC GoogLeNet of the Caffe model zoo"})
    return path


def default_folder():
    data = os.environ.get("XDG_DATA_HOME", "")
    base = pathlib.Path(data) if os.path.isabs(data) else pathlib.Path.home() / ".local" / "share"
    return base / "dpg" / "weights"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=default_folder(), metavar="DIR")
    parser.add_argument(
        "--only", choices=[*CLASSIFIERS, "inception", "googlenet"], action="append", help="may be given again"
    )
    parser.add_argument("--heads", type=pathlib.Path, metavar="DIR", help="folder with the LPIPS heads")
    parser.add_argument("--fid-file", type=pathlib.Path, metavar="FILE", help="pytorch-fid's file of weights")
    parser.add_argument("--caffemodel", type=pathlib.Path, metavar="FILE", help="bvlc_googlenet.caffemodel")
    options = parser.parse_args()
    if sys.byteorder != "little":
        sys.exit("this tool writes the machine's own byte order, and the files must be little-endian")
    wanted = options.only or [*CLASSIFIERS, "inception", *(["googlenet"] if options.caffemodel else [])]
    if wanted != ["googlenet"]:
        try:
            import torch  # noqa: F401
        except ImportError:
            sys.exit("PyTorch is not installed for this Python; run the tool with one that has it")

    options.out.mkdir(parents=True, exist_ok=True)
    missing = 0
    for what in wanted:
        try:
            if what == "inception":
                path = export_inception(options.out, options.fid_file)
            elif what == "googlenet":
                path = export_googlenet(options.out, options.caffemodel)
            else:
                path = export_lpips(what, options.out, options.heads)
            print("wrote", path)
        except (Unavailable, OSError, RuntimeError) as error:  # not installed, no file, no download
            print("%s: not made: %s" % (what, error), file=sys.stderr)
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
