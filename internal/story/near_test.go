// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/clusterstate"
)

// TestNear allocates the example on a node of which some devices are taken: the first set in order of
// those with the most links.
func TestNear(t *testing.T) {
	s := Near()
	const node = "node-1"
	slices, err := s.Topology.ResourceSlices(node)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		taken, want []string
		links       int64
	}{
		"empty":           {want: []string{"mla-0", "mla-1", "mla-2", "mla-3"}, links: 3},
		"first broken":    {taken: []string{"mla-1"}, want: []string{"mla-0", "mla-5", "mla-6", "mla-7"}, links: 3},
		"over the end":    {taken: []string{"mla-3", "mla-4"}, want: []string{"mla-0", "mla-1", "mla-2", "mla-7"}, links: 3},
		"fragmented":      {taken: s.Fragmented, want: []string{"mla-0", "mla-2", "mla-3", "mla-4"}, links: 2},
		"nothing to gain": {taken: []string{"mla-1", "mla-3", "mla-5", "mla-7"}, want: []string{"mla-0", "mla-2", "mla-4", "mla-6"}, links: 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := clusterstate.ReadFiles(resource.FilenameOptions{Filenames: []string{
				"../../manifests/examples/deviceclasses.yaml", "../../manifests/examples/" + s.Manifest,
			}}, nil, "default")
			require.NoError(t, err)
			objects.Slices = slices
			taken := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}}
			taken.Status.Allocation = &resourceapi.AllocationResult{}
			for _, name := range test.taken {
				taken.Status.Allocation.Devices.Results = append(taken.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Driver: s.Driver(), Pool: node, Device: name})
			}
			objects.Claims = append(objects.Claims, taken)
			state := clusterstate.New(objects)
			subject, err := state.Subject("pod/"+s.Pod, "default")
			require.NoError(t, err)
			problem := state.Problem(subject, structured.Features{})
			a, err := problem.NewAllocator(t.Context())
			require.NoError(t, err)
			results, details, err := a.AllocateWithDetails(t.Context(), state.Node(node), problem.Claims)
			require.NoError(t, err)
			require.Len(t, results, 1)
			var got []string
			for _, r := range results[0].Devices.Results {
				got = append(got, r.Device)
			}
			require.Equal(t, test.want, got)
			require.Equal(t, allocator.PreferenceBest, details.Outcome)
			require.Equal(t, []allocator.PreferenceValue{{Name: "links", Value: test.links}}, details.Preferences)
			require.EqualValues(t, test.links, s.Links(got))
			require.Equal(t, test.links == 3, s.Holds(got))
		})
	}
}
