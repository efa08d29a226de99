// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ofOnePod lists labels that differ between the pods of a group but don't affect the choice of nodes.
var ofOnePod = []string{
	"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name",
	"leaderworkerset.sigs.k8s.io/worker-index", "jobset.sigs.k8s.io/job-index", "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/job-global-index",
}

// KindOf returns a key that is equal for pods that are equal in everything that filters and expressions read. claims holds a text
// for each claim of the pod, which is equal for claims with equal requests.
func (r *Reading) KindOf(pod *v1.Pod, claims []string) (key [sha256.Size]byte, err error) {
	labels, seen := r.labelsOfKind(pod), r.OfPod(pod)
	type container struct {
		Resources v1.ResourceRequirements
		Ports     []v1.ContainerPort
		Restart   *v1.ContainerRestartPolicy
	}
	var containers [][]container
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		var own []container
		for i := range list {
			own = append(own, container{list[i].Resources, list[i].Ports, list[i].RestartPolicy})
		}
		containers = append(containers, own)
	}
	spec := &pod.Spec
	raw, err := json.Marshal([]any{
		labels, seen, containers, claims, spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints, spec.Overhead,
		spec.Resources, volumesThatMatter(spec.Volumes), spec.HostNetwork, spec.NodeName, spec.OS, spec.RuntimeClassName, len(spec.ResourceClaims),
	})
	return sha256.Sum256(raw), err
}

// volumesThatMatter returns the volumes that may affect the choice of nodes.
func volumesThatMatter(volumes []v1.Volume) []v1.Volume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1.Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.Projected != nil || v.DownwardAPI != nil || v.HostPath != nil
	})
}
