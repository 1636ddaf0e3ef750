# A system pool that runs no jobs, and a pool of workers that grows from nothing and shrinks back to it.

resource "azurerm_resource_group" "lockstep" {
  name     = var.name
  location = var.location
}

resource "azurerm_log_analytics_workspace" "lockstep" {
  name                = var.name
  location            = azurerm_resource_group.lockstep.location
  resource_group_name = azurerm_resource_group.lockstep.name
  retention_in_days   = 30
}

resource "azurerm_kubernetes_cluster" "lockstep" {
  #checkov:skip=CKV_AZURE_6:The addresses are a variable without a default, which refuses the whole internet
  #checkov:skip=CKV_AZURE_115:The API server is public for the named addresses alone; a private one needs a network that this example does not make
  #checkov:skip=CKV_AZURE_117:Disks are encrypted with Azure's keys; keys of one's own need a vault
  #checkov:skip=CKV_AZURE_170:The free tier has no promise of uptime; jobs survive an API server that restarts
  #checkov:skip=CKV_AZURE_227:Temporary disks hold caches that can be made again
  name                      = var.name
  location                  = azurerm_resource_group.lockstep.location
  resource_group_name       = azurerm_resource_group.lockstep.name
  dns_prefix                = var.name
  automatic_upgrade_channel = "patch"
  node_os_upgrade_channel   = "NodeImage"
  local_account_disabled    = true
  oidc_issuer_enabled       = true
  workload_identity_enabled = true
  azure_policy_enabled      = true

  api_server_access_profile {
    authorized_ip_ranges = var.authorized_ip_ranges
  }

  azure_active_directory_role_based_access_control {
    azure_rbac_enabled     = true
    admin_group_object_ids = var.admin_group_ids
  }

  default_node_pool {
    name                         = "system"
    vm_size                      = "Standard_D2ds_v5"
    auto_scaling_enabled         = true
    min_count                    = 1
    max_count                    = 2
    max_pods                     = 60
    only_critical_addons_enabled = true
    os_disk_type                 = "Ephemeral"
    os_disk_size_gb              = 60

    upgrade_settings {
      max_surge = "33%"
    }
  }

  identity {
    type = "SystemAssigned"
  }

  key_vault_secrets_provider {
    secret_rotation_enabled = true
  }

  oms_agent {
    log_analytics_workspace_id = azurerm_log_analytics_workspace.lockstep.id
  }

  network_profile {
    network_plugin      = "azure"
    network_plugin_mode = "overlay"
    # Without it a NetworkPolicy is accepted and does nothing.
    network_data_plane = "cilium"
    network_policy     = "cilium"
  }

  lifecycle {
    # The autoscaler changes it.
    ignore_changes = [default_node_pool[0].node_count]
  }
}

resource "azurerm_kubernetes_cluster_node_pool" "workers" {
  #checkov:skip=CKV_AZURE_227:Temporary disks hold caches that can be made again
  name                  = "workers"
  kubernetes_cluster_id = azurerm_kubernetes_cluster.lockstep.id
  vm_size               = var.worker_vm_size
  auto_scaling_enabled  = true
  min_count             = var.worker_nodes.min
  max_count             = var.worker_nodes.max
  max_pods              = 60
  os_disk_type          = "Ephemeral"
  node_labels           = { "lockstep.dev/pool" = "workers" }
}

resource "azurerm_kubernetes_cluster_node_pool" "gpus" {
  #checkov:skip=CKV_AZURE_227:Temporary disks hold caches that can be made again
  count                 = var.gpu_max_nodes > 0 ? 1 : 0
  name                  = "gpus"
  kubernetes_cluster_id = azurerm_kubernetes_cluster.lockstep.id
  vm_size               = var.gpu_vm_size
  auto_scaling_enabled  = true
  min_count             = 0
  max_count             = var.gpu_max_nodes
  max_pods              = 60
  node_labels           = { "lockstep.dev/pool" = "gpus" }
  # Only pods that ask for a GPU come here.
  node_taints = ["nvidia.com/gpu=present:NoSchedule"]
}
