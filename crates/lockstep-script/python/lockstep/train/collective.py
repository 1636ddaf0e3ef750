"""What stands for `ray.train.collective`."""

from ..collective import barrier, broadcast_from_rank_zero

__all__ = ["barrier", "broadcast_from_rank_zero"]
