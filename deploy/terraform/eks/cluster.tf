# A small group of machines for the system, and one for workers that grows from nothing.

resource "aws_kms_key" "secrets" {
  #checkov:skip=CKV2_AWS_64:The key's default policy lets the account's own identities use it, by their roles
  description         = "Encrypts the Secrets of ${var.name}"
  enable_key_rotation = true
}

resource "aws_eks_cluster" "lockstep" {
  #checkov:skip=CKV_AWS_38:The addresses are a variable without a default, which refuses the whole internet
  #checkov:skip=CKV_AWS_39:The API server is public for the named addresses alone
  #checkov:skip=CKV_AWS_339:The version is the one that EKS gives by default
  name                      = var.name
  role_arn                  = aws_iam_role.cluster.arn
  enabled_cluster_log_types = ["api", "audit", "authenticator", "controllerManager", "scheduler"]

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }

  vpc_config {
    subnet_ids              = aws_subnet.private[*].id
    endpoint_private_access = true
    endpoint_public_access  = true
    public_access_cidrs     = var.authorized_ip_ranges
  }

  encryption_config {
    resources = ["secrets"]
    provider {
      key_arn = aws_kms_key.secrets.arn
    }
  }

  depends_on = [aws_iam_role_policy_attachment.cluster]
}

resource "aws_eks_addon" "network" {
  cluster_name = aws_eks_cluster.lockstep.name
  addon_name   = "vpc-cni"
  # Without it a NetworkPolicy is accepted and does nothing.
  configuration_values = jsonencode({ enableNetworkPolicy = "true" })
}

resource "aws_eks_addon" "others" {
  for_each     = toset(["coredns", "kube-proxy"])
  cluster_name = aws_eks_cluster.lockstep.name
  addon_name   = each.key
  depends_on   = [aws_eks_node_group.system]
}

# Containers must not reach the machine's own credentials: one hop further than they are.
resource "aws_launch_template" "nodes" {
  name_prefix = "${var.name}-"

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = 80
      volume_type = "gp3"
      encrypted   = true
    }
  }
}

locals {
  groups = {
    system = { type = "t3.large", min = 1, max = 2, ami = "AL2023_x86_64_STANDARD", taints = [] }
    workers = {
      type   = var.worker_instance_type
      min    = var.worker_nodes.min
      max    = var.worker_nodes.max
      ami    = "AL2023_x86_64_STANDARD"
      taints = []
    }
    gpus = {
      type   = var.gpu_instance_type
      min    = 0
      max    = var.gpu_max_nodes
      ami    = "AL2023_x86_64_NVIDIA"
      taints = [{ key = "nvidia.com/gpu", value = "present", effect = "NO_SCHEDULE" }]
    }
  }
}

resource "aws_eks_node_group" "system" {
  cluster_name    = aws_eks_cluster.lockstep.name
  node_group_name = "system"
  node_role_arn   = aws_iam_role.nodes.arn
  subnet_ids      = aws_subnet.private[*].id
  ami_type        = local.groups.system.ami
  instance_types  = [local.groups.system.type]

  launch_template {
    id      = aws_launch_template.nodes.id
    version = aws_launch_template.nodes.latest_version
  }

  scaling_config {
    min_size     = local.groups.system.min
    max_size     = local.groups.system.max
    desired_size = 1
  }

  depends_on = [aws_iam_role_policy_attachment.nodes, aws_eks_addon.network]
}

resource "aws_eks_node_group" "jobs" {
  for_each        = { for name, group in local.groups : name => group if name != "system" && group.max > 0 }
  cluster_name    = aws_eks_cluster.lockstep.name
  node_group_name = each.key
  node_role_arn   = aws_iam_role.nodes.arn
  # One zone: workers that exchange gradients across zones are slower, and pay for each byte.
  subnet_ids     = [aws_subnet.private[0].id]
  ami_type       = each.value.ami
  instance_types = [each.value.type]
  labels         = { "lockstep.dev/pool" = each.key }

  launch_template {
    id      = aws_launch_template.nodes.id
    version = aws_launch_template.nodes.latest_version
  }

  dynamic "taint" {
    for_each = each.value.taints
    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = taint.value.effect
    }
  }

  scaling_config {
    min_size     = each.value.min
    max_size     = each.value.max
    desired_size = each.value.min
  }

  lifecycle {
    # The autoscaler changes it.
    ignore_changes = [scaling_config[0].desired_size]
  }

  depends_on = [aws_iam_role_policy_attachment.nodes]
}
