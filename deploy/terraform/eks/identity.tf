# Who may do what: the cluster, its machines, the autoscaler, and jobs.

data "aws_iam_policy_document" "trusts" {
  for_each = toset(["eks", "ec2"])

  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["${each.key}.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "cluster" {
  name               = "${var.name}-cluster"
  assume_role_policy = data.aws_iam_policy_document.trusts["eks"].json
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
}

resource "aws_iam_role" "nodes" {
  name               = "${var.name}-nodes"
  assume_role_policy = data.aws_iam_policy_document.trusts["ec2"].json
}

resource "aws_iam_role_policy_attachment" "nodes" {
  for_each = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"])

  role       = aws_iam_role.nodes.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

data "tls_certificate" "issuer" {
  url = aws_eks_cluster.lockstep.identity[0].oidc[0].issuer
}

resource "aws_iam_openid_connect_provider" "cluster" {
  url             = aws_eks_cluster.lockstep.identity[0].oidc[0].issuer
  client_id_list  = ["sts.amazonaws.com"]
  thumbprint_list = [data.tls_certificate.issuer.certificates[0].sha1_fingerprint]
}

locals {
  issuer = replace(aws_eks_cluster.lockstep.identity[0].oidc[0].issuer, "https://", "")
  accounts = {
    jobs       = "${var.namespace}:lockstep"
    autoscaler = "kube-system:cluster-autoscaler"
  }
}

data "aws_iam_policy_document" "account" {
  for_each = local.accounts

  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.cluster.arn]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${each.value}"]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "account" {
  for_each           = local.accounts
  name               = "${var.name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.account[each.key].json
}

data "aws_iam_policy_document" "autoscaler" {
  #checkov:skip=CKV_AWS_356:What only describes cannot be limited to one cluster
  statement {
    # These say what there is, and cannot be limited to one cluster.
    actions = [
      "autoscaling:DescribeAutoScalingGroups",
      "autoscaling:DescribeAutoScalingInstances",
      "autoscaling:DescribeLaunchConfigurations",
      "autoscaling:DescribeScalingActivities",
      "ec2:DescribeImages",
      "ec2:DescribeInstanceTypes",
      "ec2:DescribeLaunchTemplateVersions",
      "ec2:GetInstanceTypesFromInstanceRequirements",
      "eks:DescribeNodegroup",
    ]
    resources = ["*"]
  }

  statement {
    actions   = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
    resources = ["arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/*"]
    condition {
      test     = "StringEquals"
      variable = "aws:ResourceTag/k8s.io/cluster-autoscaler/${var.name}"
      values   = ["owned"]
    }
  }
}

resource "aws_iam_role_policy" "autoscaler" {
  #checkov:skip=CKV_AWS_355:What only describes cannot be limited to one cluster
  name   = "scale"
  role   = aws_iam_role.account["autoscaler"].name
  policy = data.aws_iam_policy_document.autoscaler.json
}

data "aws_iam_policy_document" "jobs" {
  statement {
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.runs.arn]
  }

  statement {
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    resources = ["${aws_s3_bucket.runs.arn}/*"]
  }
}

resource "aws_iam_role_policy" "jobs" {
  name   = "runs"
  role   = aws_iam_role.account["jobs"].name
  policy = data.aws_iam_policy_document.jobs.json
}
