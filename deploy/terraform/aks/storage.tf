# One container for data, embeddings and runs, which jobs reach as az://runs/ by their workload identity: no key
# is in any job, pod or Secret.

resource "random_string" "account" {
  length  = 8
  upper   = false
  special = false
}

resource "azurerm_storage_account" "runs" {
  #checkov:skip=CKV_AZURE_33:Queues are not used
  #checkov:skip=CKV_AZURE_59:Reached from the cluster over Azure's network; keys are off, so only identities with a role get in
  #checkov:skip=CKV_AZURE_206:Copies in one region are enough for what can be trained again
  #checkov:skip=CKV2_AZURE_1:Encrypted with Azure's keys; keys of one's own need a vault
  #checkov:skip=CKV2_AZURE_33:A private endpoint needs a network that this example does not make
  name                            = "${substr(replace(var.name, "-", ""), 0, 12)}${random_string.account.result}"
  location                        = azurerm_resource_group.lockstep.location
  resource_group_name             = azurerm_resource_group.lockstep.name
  account_tier                    = "Standard"
  account_replication_type        = "LRS"
  min_tls_version                 = "TLS1_2"
  https_traffic_only_enabled      = true
  shared_access_key_enabled       = false
  local_user_enabled              = false
  allow_nested_items_to_be_public = false

  blob_properties {
    delete_retention_policy {
      days = 7
    }
  }

  sas_policy {
    expiration_period = "01.00:00:00"
  }
}

resource "azurerm_storage_container" "runs" {
  #checkov:skip=CKV2_AZURE_21:Requests of blobs are not logged: there are thousands in a run
  name                  = "runs"
  storage_account_id    = azurerm_storage_account.runs.id
  container_access_type = "private"
}

resource "azurerm_user_assigned_identity" "jobs" {
  name                = "${var.name}-jobs"
  location            = azurerm_resource_group.lockstep.location
  resource_group_name = azurerm_resource_group.lockstep.name
}

resource "azurerm_role_assignment" "jobs" {
  scope                = azurerm_storage_container.runs.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = azurerm_user_assigned_identity.jobs.principal_id
}

resource "azurerm_federated_identity_credential" "jobs" {
  name                = "lockstep-jobs"
  resource_group_name = azurerm_resource_group.lockstep.name
  parent_id           = azurerm_user_assigned_identity.jobs.id
  issuer              = azurerm_kubernetes_cluster.lockstep.oidc_issuer_url
  audience            = ["api://AzureADTokenExchange"]
  subject             = "system:serviceaccount:${var.namespace}:lockstep"
}
