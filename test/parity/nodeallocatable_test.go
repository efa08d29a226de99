// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// TestNodeAllocatableExtendedResources shows a limitation of upstream's plugin: the API server rejects the status that the
// plugin writes for devices of extended resources, because the claim for extended resources is not in the pod's lists of
// claims. If this test fails, upstream has changed: remove the line in docs/differences.md.
func TestNodeAllocatableExtendedResources(t *testing.T) {
	const claim = "pod-extended-resources-x"
	before := &core.Pod{}
	before.Name, before.Namespace, before.ResourceVersion = "pod", "default", "1"
	before.Spec.Containers = []core.Container{{Name: "c"}}
	before.Status.ExtendedResourceClaimStatus = &core.PodExtendedResourceClaimStatus{ResourceClaimName: claim}
	after := before.DeepCopy()
	after.Status.NodeAllocatableResourceClaimStatuses = []core.NodeAllocatableResourceClaimStatus{{
		ResourceClaimName: claim,
	}}
	errs := validation.ValidatePodStatusUpdate(after, before, validation.PodValidationOptions{})
	require.ErrorContains(t, errs.ToAggregate(), "no mapping found in pod reference")
}
