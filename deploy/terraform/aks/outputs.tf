output "credentials" {
  description = "Makes kubectl, and so lockstep, use the cluster."
  value       = "az aks get-credentials --resource-group ${azurerm_resource_group.lockstep.name} --name ${azurerm_kubernetes_cluster.lockstep.name}"
}

output "service_account" {
  description = "The service account of jobs, which may use the storage: kubectl apply it once."
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
        azure.workload.identity/client-id: ${azurerm_user_assigned_identity.jobs.client_id}
  EOT
}

output "store" {
  description = "What a job writes as run.store, with the account in AZURE_STORAGE_ACCOUNT_NAME."
  value       = "az://${azurerm_storage_container.runs.name}/"
}

output "account" {
  description = "The storage account."
  value       = azurerm_storage_account.runs.name
}
