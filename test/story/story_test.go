// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/topology"
)

func TestStories(t *testing.T) {
	for _, s := range []*Story{Ring(), Grid()} {
		t.Run(s.Pod, func(t *testing.T) {
			manifest, err := os.ReadFile(filepath.Join("../../manifests/examples", s.Manifest))
			require.NoError(t, err)
			for _, name := range []string{s.Template, s.Pod, s.Driver()} {
				require.Contains(t, string(manifest), "ame: "+name+"\n")
			}
			var names []string
			for _, d := range s.Topology.Devices {
				names = append(names, d.Name)
			}
			require.True(t, s.holdsForAny(nil, names))

			_, err = s.Topology.Select(s.Fragmented)
			require.NoError(t, err)
			left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.Fragmented, name) })
			require.GreaterOrEqual(t, len(left), 4)
			require.False(t, s.holdsForAny(nil, left))
		})
	}
}

// TestNeurons: what the story asks for is there on an empty node, and not on a fragmented one.
func TestNeurons(t *testing.T) {
	s := Neurons()
	manifest, err := os.ReadFile(filepath.Join("../../manifests/examples", s.Manifest))
	require.NoError(t, err)
	for _, name := range []string{s.Template, s.Pod, s.Driver()} {
		require.Contains(t, string(manifest), "ame: "+name+"\n")
	}
	require.True(t, s.Holds([]string{"neuron-device-0", "neuron-device-1", "neuron-device-4", "neuron-device-5", "pci-0000-10-1d-0", "pci-0000-30-1d-0"}))
	require.False(t, s.Holds([]string{"neuron-device-0", "neuron-device-1", "neuron-device-4", "neuron-device-5", "pci-0000-10-1d-0", "pci-0000-20-1d-0"}), "another's interface")
	require.False(t, s.Holds([]string{"neuron-device-0", "neuron-device-1", "neuron-device-8", "neuron-device-9", "pci-0000-10-1d-0", "pci-0000-50-1d-0"}), "not beside each other")
	require.False(t, s.Holds([]string{"neuron-device-0"}))
	var pairs [][]string
	for i := range 8 {
		a, b := fmt.Sprint("neuron-device-", 2*i), fmt.Sprint("neuron-device-", 2*i+1)
		if !slices.Contains(s.Fragmented, a) && !slices.Contains(s.Fragmented, b) {
			pairs = append(pairs, []string{a, b, fmt.Sprintf("pci-0000-%d0-1d-0", i+1)})
		}
	}
	for _, one := range pairs {
		for _, other := range pairs {
			require.False(t, s.Holds(slices.Concat(one, other)))
		}
	}
	require.Len(t, pairs, 4)
}

// holdsForAny four of the devices, some of them chosen already.
func (s *Story) holdsForAny(chosen, names []string) bool {
	if len(chosen) == 4 {
		return s.Holds(chosen)
	}
	for i := range names {
		if s.holdsForAny(append(slices.Clone(chosen), names[i]), names[i+1:]) {
			return true
		}
	}
	return false
}

func TestOccupant(t *testing.T) {
	claim, pod, err := Ring().Occupant("other", "node-1", "mla-1", "mla-5")
	require.NoError(t, err)
	require.Equal(t, "other", *pod.Spec.ResourceClaims[0].ResourceClaimName)
	require.Len(t, claim.Spec.Devices.Requests, 2)
	require.Equal(t, `device.driver == "mla.example.com" && device.attributes["mla.example.com"].index == 5`,
		claim.Spec.Devices.Requests[1].Exactly.Selectors[0].CEL.Expression)
	_, _, err = Ring().Occupant("other", "node-1", "mla-9")
	require.ErrorContains(t, err, `has no device "mla-9"`)
	require.Panics(t, func() { must(topology.NewRing(topology.Family{Driver: "mla.example.com", Prefix: "mla"}, 1)) })
}

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
