variable "name" {
  description = "Name of the cluster, and of all that belongs to it."
  type        = string
  default     = "lockstep"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "Between 3 and 20 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "region" {
  description = "AWS region."
  type        = string
  default     = "eu-central-1"
}

variable "authorized_ip_ranges" {
  description = "Addresses that may reach the API server, such as [\"203.0.113.7/32\"]."
  type        = list(string)

  validation {
    condition     = length(var.authorized_ip_ranges) > 0 && !contains(var.authorized_ip_ranges, "0.0.0.0/0")
    error_message = "Name the addresses that you come from; the whole internet is not one of them."
  }
}

variable "worker_instance_type" {
  description = "Machines that train."
  type        = string
  default     = "m7i.2xlarge"
}

variable "worker_nodes" {
  description = "How few and how many machines train."
  type        = object({ min = number, max = number })
  default     = { min = 0, max = 4 }

  validation {
    condition     = var.worker_nodes.min >= 0 && var.worker_nodes.max >= max(var.worker_nodes.min, 1)
    error_message = "min must not be negative, nor larger than max; max must be at least 1."
  }
}

variable "gpu_instance_type" {
  description = "Machines with GPUs, if gpu_max_nodes is not 0."
  type        = string
  default     = "g5.xlarge"
}

variable "gpu_max_nodes" {
  description = "How many machines with GPUs there may be. None by default: one costs more than all the rest."
  type        = number
  default     = 0
}

variable "namespace" {
  description = "Namespace of the jobs, whose service account may use the bucket."
  type        = string
  default     = "lockstep"
}
