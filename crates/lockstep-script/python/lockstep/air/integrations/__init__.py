"""What stands for `ray.air.integrations` in older scripts."""
