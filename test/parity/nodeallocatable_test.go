// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// The claim for extended resources is not in the lists of a pod's claims, so the API server refuses the status that upstream's
// plugin writes for its devices. If this test fails, remove the line in docs/differences.md.
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
