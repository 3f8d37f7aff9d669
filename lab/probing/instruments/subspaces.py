"""Subspaces of the residual stream or of a head's output, and the mean coordinates in them without and with a carry.

Shapes: N streams, D width of the model, R dimensions of a subspace.
"""

from typing import NamedTuple

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing.addition import probes

_SLACK = 1e-3
"""How much entries of V^T V may differ from those of the identity matrix."""


class Subspace(NamedTuple):
    """A subspace, and the mean coordinates in it of streams without and with a carry."""

    basis_DR: torch.Tensor
    """Orthonormal columns V."""
    mean_0_R: torch.Tensor
    """The mean coordinates V^T x of streams x without a carry."""
    mean_1_R: torch.Tensor
    """The mean coordinates of streams with a carry."""

    @classmethod
    def of(cls, basis_DR: torch.Tensor, stream_ND: torch.Tensor, carry_N: np.ndarray) -> "Subspace":
        """A subspace with the mean coordinates of these streams. Raises ModelError unless the basis is orthonormal and
        has their width."""
        check_basis(basis_DR, stream_ND.shape[1])
        carry = torch.from_numpy(carry_N == 1)
        return cls(basis_DR, *((stream_ND[rows] @ basis_DR).mean(0) for rows in (~carry, carry)))

    def elsewhere(self, seed: int) -> "Subspace":
        """A random subspace with the same mean coordinates."""
        width, rank = self.basis_DR.shape
        return self._replace(basis_DR=random_basis(width, rank, seed).to(self.basis_DR))

    def write(self, stream_BQD: torch.Tensor, carry_BQ: torch.Tensor) -> torch.Tensor:
        """The streams, with their part in the subspace replaced by the mean without a carry (0) or with one (1)."""
        exact_BQD = stream_BQD.float()
        basis_DR, mean_0_R, mean_1_R = (tensor.to(exact_BQD) for tensor in self)
        mean_BQR = torch.where(carry_BQ.to(stream_BQD.device)[..., None] > 0, mean_1_R, mean_0_R)
        return (exact_BQD + (mean_BQR - exact_BQD @ basis_DR) @ basis_DR.T).to(stream_BQD.dtype)


def check_basis(basis_DR: torch.Tensor, width: int) -> None:
    """Raises ModelError unless the columns are orthonormal and have this width."""
    if basis_DR.ndim != 2 or len(basis_DR) != width or basis_DR.shape[1] > width:
        raise ModelError(f"a subspace's basis of shape {tuple(basis_DR.shape)}: should be ({width}, dimensions)")
    gap_RR = (basis_DR.T @ basis_DR - torch.eye(basis_DR.shape[1]).to(basis_DR)).abs()
    if not bool((gap_RR <= _SLACK).all()):
        gap = float(gap_RR.max())
        raise ModelError(f"the basis of a subspace should be orthonormal; V^T V is off by {gap:.2g}, at most {_SLACK}")


def difference_of_means(stream_ND: torch.Tensor, carry_N: np.ndarray) -> torch.Tensor:
    """The unit vector (D, 1) from the mean of streams without a carry to the mean of streams with one."""
    carry = torch.from_numpy(carry_N == 1)
    return _unit(stream_ND[carry].mean(0) - stream_ND[~carry].mean(0))


def probe_direction(stream_ND: torch.Tensor, carry_N: np.ndarray) -> torch.Tensor:
    """The unit vector (D, 1) along which a softmax regression reads the carry."""
    weight_DC = probes.fit(stream_ND[None], torch.from_numpy(carry_N).long(), 2).weight_GFC[0]
    return _unit(weight_DC[:, 1] - weight_DC[:, 0])


def random_basis(width: int, rank: int, seed: int = 0) -> torch.Tensor:
    """The orthonormal columns (D, R) of a subspace drawn uniformly."""
    return torch.linalg.qr(torch.randn(width, rank, generator=torch.Generator().manual_seed(seed)))[0]


def _unit(direction_D: torch.Tensor) -> torch.Tensor:
    return (direction_D / direction_D.norm().clamp(min=1e-30))[:, None]
