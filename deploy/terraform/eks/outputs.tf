output "credentials" {
  description = "Makes kubectl, and so lockstep, use the cluster."
  value       = "aws eks update-kubeconfig --region ${var.region} --name ${aws_eks_cluster.lockstep.name}"
}

output "service_account" {
  description = "The service account of jobs, which may use the bucket: kubectl apply it once."
  value       = <<-EOT
    apiVersion: v1
    kind: Namespace
    metadata:
      name: ${var.namespace}
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: lockstep
      namespace: ${var.namespace}
      annotations:
        eks.amazonaws.com/role-arn: ${aws_iam_role.account["jobs"].arn}
  EOT
}

output "autoscaler_role" {
  description = "The role of the cluster autoscaler, for its Helm chart."
  value       = aws_iam_role.account["autoscaler"].arn
}

output "store" {
  description = "What a job writes as run.store."
  value       = "s3://${aws_s3_bucket.runs.bucket}/"
}
