"""Writes cast_digests.txt: what NumPy and ml_dtypes make of every bit pattern that matters.

    python tests/data/tensor/make_cast_digests.py > tests/data/tensor/cast_digests.txt

One line a pair of types: source, target, SHA-256 of the converted patterns, little endian. The patterns of a type:
 - up to 16 bits: every code, ascending (types of less than a byte: one byte each, unused high bits zero; bool: 0, 1);
 - 32 bits: (h << 16) + l for every h of 16 bits, ascending, and for each every l of LOW32;
 - 64 bits: (h << 48) + l likewise with LOW64.

Where the libraries leave the result open or depend on the processor, the rule of src/tensor/cast.h is applied instead:
NaN is canonical with the sign of the source except from float16 and bfloat16 to float32, and a float becomes an integer
by truncation and clamping, NaN becoming 0.
"""

import hashlib

import ml_dtypes
import numpy as np

LOW32 = [0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x5000, 0x7FFF, 0x8000, 0x8001, 0xF000, 0xFFFF]
LOW64 = [
    0, 1, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, 3 << 28, (1 << 41) - 1, 1 << 41, (1 << 41) + 1, 3 << 41,
    (1 << 44) - 1, 1 << 44, (1 << 44) + 1, (1 << 47) - 1, 1 << 47, (1 << 47) + 1, (1 << 47) + (1 << 28), (1 << 48) - 1,
]  # fmt: skip

SMALL_FLOATS = {
    "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float8_e3m4": 8, "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8, "float8_e4m3b11fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
}  # fmt: skip
INTEGERS = {
    "int2": (-2, 1), "int4": (-8, 7), "uint4": (0, 15),
    **{f"{s}int{b}": (int(np.iinfo(f"{s}int{b}").min), int(np.iinfo(f"{s}int{b}").max))
       for s in ("", "u") for b in (8, 16, 32, 64)},
}  # fmt: skip
FLOATS = [*SMALL_FLOATS, "float16", "bfloat16", "float32", "float64"]
NAMES = ["bool", *INTEGERS, *FLOATS]


def numpy_type(name):
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def patterns(name):
    size = numpy_type(name).itemsize
    bits = {"bool": 1, "int2": 2, "int4": 4, "uint4": 4, **SMALL_FLOATS}.get(name, 8 * size)
    if bits <= 16:
        codes = np.arange(1 << bits, dtype=np.uint64)
    else:
        low = np.array(LOW32 if bits == 32 else LOW64, np.uint64)
        codes = ((np.arange(1 << 16, dtype=np.uint64) << np.uint64(bits - 16))[:, None] + low).ravel()
    return codes.astype(f"u{size}").view(numpy_type(name))


def set_nan(result, where, negative):
    """The canonical NaN of the result's type, in place; the 4 and 6 bit types have none and stay as they are."""
    quiet = {"float16": 0x7E00, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}.get(result.dtype.name)
    if quiet is None:
        return
    codes = result.view(f"u{result.dtype.itemsize}")
    codes[where] = quiet
    codes[where & negative] |= codes.dtype.type(1 << (8 * result.dtype.itemsize - 1))


def convert(values, source, target):
    if source == target:
        return values
    if target == "bool":
        return values != 0 if source not in FLOATS else values.astype(np.float64) != 0
    if source in FLOATS and target in INTEGERS:
        low, high = INTEGERS[target]
        out = [0 if v != v else high if v >= high else low if v <= low else int(v)
               for v in values.astype(np.float64).tolist()]  # fmt: skip
        wide = np.array(out, np.int64 if low < 0 else np.uint64)
        return wide.astype(numpy_type(target))
    if source in ("int2", "int4", "uint4", *SMALL_FLOATS) and target in ("int2", "int4", "uint4", *SMALL_FLOATS):
        values = values.astype(np.float32)  # exact; ml_dtypes lacks some of these pairs
    result = values.astype(numpy_type(target))
    if source in FLOATS and (source, target) not in {("float16", "float32"), ("bfloat16", "float32")}:
        wide = values.astype(np.float64)
        set_nan(result, np.isnan(wide), np.signbit(wide))
    return result


np.seterr(all="ignore")
for source in NAMES:
    values = patterns(source)
    for target in NAMES:
        result = np.ascontiguousarray(convert(values, source, target))
        print(source, target, hashlib.sha256(result.tobytes()).hexdigest())
