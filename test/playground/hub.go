// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import resourceapi "k8s.io/api/resource/v1"

type deviceClass = resourceapi.DeviceClass

// hub has the clusters for examples of Placements.
const hub = `# Three clusters to choose from.
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: east-1
  labels: {region: east, env: prod, cluster.open-cluster-management.io/clusterset: global, version: v1.37.0}
status:
  version: {kubernetes: v1.37.2}
  allocatable: {cpu: "64", memory: 256Gi}
  clusterClaims: [{name: kubeversion.open-cluster-management.io, value: v1.37.2}, {name: platform.open-cluster-management.io, value: AWS}]
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: east-2
  labels: {region: east, env: dev, cluster.open-cluster-management.io/clusterset: global, version: v1.36.0}
status:
  version: {kubernetes: v1.36.4}
  allocatable: {cpu: "32", memory: 128Gi}
  clusterClaims: [{name: kubeversion.open-cluster-management.io, value: v1.36.4}, {name: platform.open-cluster-management.io, value: GCP}]
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: west-1
  labels: {region: west, env: prod, cluster.open-cluster-management.io/clusterset: global, version: v1.35.0}
status:
  version: {kubernetes: v1.35.6}
  allocatable: {cpu: "16", memory: 64Gi}
  clusterClaims: [{name: kubeversion.open-cluster-management.io, value: v1.35.6}, {name: platform.open-cluster-management.io, value: AWS}]
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global}
spec: {clusterSet: global}
`
