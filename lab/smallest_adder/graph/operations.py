"""The operations that a model may be made of, in five families, and why each family is allowed.

An operation that is not listed is refused: random numbers (a seed would be a weight), views of bits (one number could
be several), everything that reads memory by address, and operations that no submission has needed yet.
"""

from enum import Enum
from typing import Any

import torch


class Kind(Enum):
    """The families of operations; each value says what they do."""

    MOVE = "puts numbers elsewhere, and makes none"
    MAKE = "makes tensors of sizes and of the numbers in the code, which are counted"
    SUM = "adds and multiplies, as every layer does; over positions only attention may"
    BEND = "is smooth or has hinges: activations, norms, softmax, and positions' waves"
    STEP = "rounds, compares and counts: only on tokens and positions, never on what is learned or attended"


_NAMES = {
    Kind.MOVE: """
        view reshape expand expand_as permute transpose t unsqueeze squeeze select slice split split_with_sizes unbind
        chunk narrow alias detach clone cat stack flip roll diagonal repeat tile constant_pad_nd slice_scatter
        select_scatter diagonal_scatter index_put copy _to_copy fill masked_fill where tril triu embedding index gather
        index_select scatter view_as_real view_as_complex complex real imag movedim unfold""",
    Kind.MAKE: """
        arange full zeros ones empty scalar_tensor zeros_like ones_like full_like empty_like new_zeros new_ones new_full
        new_empty eye linspace new_empty_strided empty_strided""",
    Kind.SUM: """
        add sub rsub mul div neg mm bmm addmm baddbmm mv dot addmv sum mean cumsum cumprod prod addcmul addcdiv lerp
        linear convolution scatter_add index_add true_divide _trilinear addr outer vdot""",
    Kind.BEND: """
        exp exp2 expm1 log log2 log10 log1p sigmoid tanh relu gelu silu softplus elu leaky_relu hardtanh hardswish
        hardsigmoid mish erf sin cos tan atan sinh cosh polar pow square sqrt rsqrt reciprocal abs maximum minimum
        clamp clamp_min clamp_max max min amax amin _softmax _safe_softmax _log_softmax logsumexp log_sigmoid_forward
        native_layer_norm native_group_norm var std var_mean rms_norm _fused_rms_norm norm linalg_vector_norm
        nan_to_num threshold celu selu glu prelu _prelu_kernel logaddexp cummax relu6
        _weight_norm_interface _euclidean_dist _cdist_forward""",
    Kind.STEP: """
        eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not
        bitwise_left_shift bitwise_right_shift __lshift__ __rshift__ __and__ __or__ __xor__ floor ceil round trunc frac
        remainder fmod floor_divide sign sgn argmax argmin sort topk any all isinf isnan isfinite heaviside bucketize
        searchsorted isin atan2""",
}
OPERATIONS = {name: kind for kind, names in _NAMES.items() for name in names.split()}

LOOK_UPS = ("index", "embedding", "gather", "index_select")
SOFTMAXES = ("_softmax", "_safe_softmax")
CONTRACTIONS = ("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "sum", "mean", "linear", "vdot", "prod")

_SAME_AS = {"_unsafe_view": "reshape", "view": "reshape", "_reshape_alias": "reshape", "lift_fresh": "alias",
            "unsafe_split": "split", "empty": "zeros", "empty_like": "zeros_like",
            "new_empty": "new_zeros"}  # fmt: skip
"""Operations that are replaced: by ones that take any memory layout, or that do not show what was in memory before."""

_TYPES = (
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("int8", "uint8", "int16", "int32", "int64", "bool"),
)
NUMBER_TYPES = {name: getattr(torch, name) for name in _TYPES}


def operation(name: str) -> tuple[str, Any, Kind]:
    """The name, torch's function and the kind of an operation in a recorded pass, such as "aten.view_copy.default".

    Raises ValueError for an operation that is not allowed.
    """
    library, _, rest = name.partition(".")
    base, _, overload = rest.partition(".")
    base = base if base in OPERATIONS else base.removesuffix("_copy").removesuffix("_")
    base = _SAME_AS.get(base, base)
    overload = "default" if overload == "memory_format" else overload
    if library != "aten" or base not in OPERATIONS or overload not in getattr(torch.ops.aten, base).overloads():
        raise ValueError(f"{name.removeprefix('aten.')}: not among the operations that a model may be made of")
    function = getattr(getattr(torch.ops.aten, base), overload)
    if function._schema.is_mutable:
        raise ValueError(f"{name.removeprefix('aten.')}: writes into a tensor that was made before")
    return base, function, Kind.STEP if "mode" in overload else OPERATIONS[base]
