variable "name" {
  description = "Name of the cluster, and of all that belongs to it."
  type        = string
  default     = "lockstep"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "Between 3 and 20 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "location" {
  description = "Azure region."
  type        = string
  default     = "westeurope"
}

variable "admin_group_ids" {
  description = "Entra groups whose members administer the cluster. Local accounts are off, so at least one is needed."
  type        = list(string)

  validation {
    condition     = length(var.admin_group_ids) > 0
    error_message = "Name at least one group: without one nobody could reach the cluster."
  }
}

variable "authorized_ip_ranges" {
  description = "Addresses that may reach the API server, such as [\"203.0.113.7/32\"]."
  type        = list(string)

  validation {
    condition     = length(var.authorized_ip_ranges) > 0 && !contains(var.authorized_ip_ranges, "0.0.0.0/0")
    error_message = "Name the addresses that you come from; the whole internet is not one of them."
  }
}

variable "worker_vm_size" {
  description = "Machines that train."
  type        = string
  default     = "Standard_D8ds_v5"
}

variable "worker_nodes" {
  description = "How few and how many machines train. With min = 0, a cluster at rest costs its system node alone."
  type        = object({ min = number, max = number })
  default     = { min = 0, max = 4 }

  validation {
    condition     = var.worker_nodes.min >= 0 && var.worker_nodes.max >= var.worker_nodes.min
    error_message = "min must not be negative, nor larger than max."
  }
}

variable "gpu_vm_size" {
  description = "Machines with GPUs, if gpu_max_nodes is not 0."
  type        = string
  default     = "Standard_NC24ads_A100_v4"
}

variable "gpu_max_nodes" {
  description = "How many machines with GPUs there may be. None by default: one costs more than all the rest."
  type        = number
  default     = 0
}

variable "namespace" {
  description = "Namespace of the jobs, whose service account may use the storage."
  type        = string
  default     = "lockstep"
}
