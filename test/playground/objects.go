// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import resourceapi "k8s.io/api/resource/v1"

type deviceClass = resourceapi.DeviceClass

// gang is a group of two pods that get all GPUs of two nodes. The groups in manifests/examples belong to Jobs and other objects,
// whose pods only a cluster creates.
const gang = `# Two workers on two nodes, with all GPUs of each node. The constraint is on the set of nodes.
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: celset.dev/two_nodes}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: all-gpus}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 8}}]
      config:
      - opaque:
          driver: celset.dev
          parameters:
            apiVersion: celset.dev/v1alpha1
            kind: CELNodeSetConstraint
            name: two_nodes
            expression: nodes.map(n, n.labels['kubernetes.io/hostname']).distinct().size() == 2
---
apiVersion: v1
kind: Pod
metadata: {name: worker-0}
spec:
  schedulerName: celset-scheduler
  schedulingGroup: {podGroupName: train}
  resourceClaims: [{name: gpus, resourceClaimTemplateName: all-gpus}]
  containers: [{name: train, image: registry.k8s.io/pause:3.10, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: worker-1}
spec:
  schedulerName: celset-scheduler
  schedulingGroup: {podGroupName: train}
  resourceClaims: [{name: gpus, resourceClaimTemplateName: all-gpus}]
  containers: [{name: train, image: registry.k8s.io/pause:3.10, resources: {claims: [{name: gpus}]}}]
`

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
