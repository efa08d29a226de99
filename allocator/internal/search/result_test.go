// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
)

// A selector without terms can't come from an API server. It must not be treated as a selector that ties the device to the node.
func TestNodeSelectorWithoutTerms(t *testing.T) {
	chosen := &inventory.Candidate{
		Device: &resourceapi.Device{Name: "a"},
		Slice:  &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{NodeSelector: &v1.NodeSelector{}}},
	}
	selector, err := nodeSelector("node-1", []Choice{{Candidate: chosen}})
	require.NoError(t, err)
	require.Nil(t, selector)
}
