"""Makes minilm.onnx, the graph of all-MiniLM-L6-v2 without its weights.

usage: python3 minilm.py MODEL.SAFETENSORS minilm.onnx   (needs the package onnx)

The weights stay in the published file: every tensor is external data at its offset there. Linear layers
are Gemm nodes that take the weights as they are stored ([out, in]), so that nothing is copied at load.
Input: input_ids and attention_mask [batch, tokens]. Output: embedding [batch, 384], masked mean over the
tokens, not yet normalised.
"""

import json
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, HEAD, HIDDEN = 6, 12, 32, 384

source, target = sys.argv[1:]
with open(source, "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
start = 8 + length
nodes, constants = [], {}


def weight(name):
    if name not in constants:
        about = header[name]
        assert about["dtype"] == "F32"
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=about["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        begin, end = about["data_offsets"]
        for key, value in (("location", "weights.onnx.data"), ("offset", start + begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
        constants[name] = tensor
    return name


def constant(name, value):
    constants[name] = numpy_helper.from_array(np.asarray(value), name)
    return name


def node(op, *inputs, **attributes):
    output = attributes.pop("output", f"n{len(nodes)}")
    nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
    return output


def linear(x, name):
    return node("Gemm", x, weight(name + ".weight"), weight(name + ".bias"), transB=1)


def norm(x, name):
    return node("LayerNormalization", x, weight(name + ".weight"), weight(name + ".bias"), axis=-1, epsilon=1e-12)


def ints(name, *values):
    return constant(name, np.array(values, np.int64))


one, hidden = ints("one", 1), ints("hidden", HIDDEN)
heads = ints("heads", HEADS, HEAD)
shape = node("Shape", "input_ids")
split = node("Concat", shape, heads, axis=0)  # [batch, tokens, heads, head]
flat = ints("flat", -1, HIDDEN)
tokens = node("Gather", shape, constant("second", np.int64(1)), axis=0)
positions = node("Range", constant("first", np.int64(0)), tokens, constant("step", np.int64(1)))

words = node("Gather", weight("embeddings.word_embeddings.weight"), "input_ids", axis=0)
places = node("Gather", weight("embeddings.position_embeddings.weight"), positions, axis=0)
kinds = node("Gather", weight("embeddings.token_type_embeddings.weight"), constant("kind", np.int64(0)), axis=0)
x = norm(node("Add", node("Add", words, places), kinds), "embeddings.LayerNorm")
x = node("Reshape", x, flat)

mask = node("Cast", "attention_mask", to=TensorProto.FLOAT)
hidden_tokens = node("Sub", constant("visible", np.float32(1)), node("Unsqueeze", mask, ints("middle", 1, 2)))
penalty = node("Mul", hidden_tokens, constant("minus", np.float32(-1e9)))
scale = constant("scale", np.float32(1 / np.sqrt(HEAD)))
for layer in range(LAYERS):
    prefix = f"encoder.layer.{layer}."
    part = lambda name, perm: node(
        "Transpose", node("Reshape", linear(x, prefix + "attention.self." + name), split), perm=perm
    )
    q, k, v = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1]), part("value", [0, 2, 1, 3])
    scores = node("Add", node("Mul", node("MatMul", q, k), scale), penalty)
    mixed = node("MatMul", node("Softmax", scores, axis=-1), v)
    mixed = node("Reshape", node("Transpose", mixed, perm=[0, 2, 1, 3]), flat)
    x = norm(node("Add", linear(mixed, prefix + "attention.output.dense"), x), prefix + "attention.output.LayerNorm")
    wide = node("Gelu", linear(x, prefix + "intermediate.dense"))
    x = norm(node("Add", linear(wide, prefix + "output.dense"), x), prefix + "output.LayerNorm")

x = node("Reshape", x, node("Concat", shape, hidden, axis=0))
total = node("ReduceSum", node("Mul", x, node("Unsqueeze", mask, ints("last", 2))), one, keepdims=0)
count = node("ReduceSum", mask, one, keepdims=1)
node("Div", total, count, output="embedding")

integers = lambda name: helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
graph = helper.make_graph(
    nodes,
    "all-MiniLM-L6-v2",
    [integers("input_ids"), integers("attention_mask")],
    [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])],
    initializer=list(constants.values()),
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
with open(target, "wb") as file:
    file.write(model.SerializeToString())
