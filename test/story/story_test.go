// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
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
	"github.com/celset/celset/internal/clusterstate/reading"
	"github.com/celset/celset/internal/machine"
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

// holdsForAny reports whether some four devices of names, which include all chosen devices, are a set that the pod may get.
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

// TestNear allocates the example with a preference on a ring where some devices are in use. The claim must get the first of the
// sets with the most links.
func TestNear(t *testing.T) {
	ring := Ring()
	for name, test := range map[string]struct {
		taken, want []string
		links       int64
	}{
		"empty":           {want: []string{"mla-0", "mla-1", "mla-2", "mla-3"}, links: 3},
		"first broken":    {taken: []string{"mla-1"}, want: []string{"mla-0", "mla-5", "mla-6", "mla-7"}, links: 3},
		"over the end":    {taken: []string{"mla-3", "mla-4"}, want: []string{"mla-0", "mla-1", "mla-2", "mla-7"}, links: 3},
		"fragmented":      {taken: ring.Fragmented, want: []string{"mla-0", "mla-2", "mla-3", "mla-4"}, links: 2},
		"nothing to gain": {taken: []string{"mla-1", "mla-3", "mla-5", "mla-7"}, want: []string{"mla-0", "mla-2", "mla-4", "mla-6"}, links: 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, details := allocate(t, "ring-4-near.yaml", "near", ring.Topology, test.taken)
			require.Equal(t, test.want, got)
			require.Equal(t, allocator.PreferenceBest, details.Outcome)
			require.Equal(t, []allocator.PreferenceValue{{Name: "links", Value: test.links}}, details.Preferences)
			links := 0
			for _, edge := range ring.Topology.Edges() {
				if slices.Contains(got, edge.A) && slices.Contains(got, edge.B) {
					links++
				}
			}
			require.EqualValues(t, test.links, links)
			require.Equal(t, test.links == 3, ring.Holds(got))
		})
	}
}

// TestNeurons allocates the example for a trn1.32xlarge. The claim must get four neighbouring devices of the torus and their
// two network interfaces. If one device of each pair in every second column is in use, no such set is left.
func TestNeurons(t *testing.T) {
	m, err := machine.ByName("aws-trn1")
	require.NoError(t, err)
	for name, test := range map[string]struct{ taken, want []string }{
		"free": {taken: []string{"neuron-device-0", "neuron-device-7"}, want: []string{
			"neuron-device-12", "neuron-device-13", "neuron-device-8", "neuron-device-9", "pci-0000-50-1d-0", "pci-0000-70-1d-0",
		}},
		"fragmented": {taken: []string{"neuron-device-4", "neuron-device-6", "neuron-device-12", "neuron-device-14"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := allocate(t, "trn1-2x2.yaml", "neurons", m.Topology("node-1"), test.taken)
			slices.Sort(got)
			require.Equal(t, test.want, got)
		})
	}
}

// allocate allocates the claim of an example on a node with the devices of a topology. The devices in taken are in use.
func allocate(t *testing.T, example, pod string, devices topology.Topology, taken []string) ([]string, allocator.Details) {
	t.Helper()
	const node = "node-1"
	objects, err := reading.Files(resource.FilenameOptions{Filenames: []string{
		"../../manifests/examples/deviceclasses.yaml", "../../manifests/examples/" + example,
	}}, nil, "default")
	require.NoError(t, err)
	objects.Slices, err = devices.ResourceSlices(node)
	require.NoError(t, err)
	other := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	other.Status.Allocation = &resourceapi.AllocationResult{}
	for _, name := range taken {
		device, found := devices.Device(name)
		require.True(t, found)
		other.Status.Allocation.Devices.Results = append(other.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Driver: device.Driver, Pool: node, Device: name})
	}
	objects.Claims = append(objects.Claims, other)
	state := clusterstate.New(objects)
	subject, err := state.Subject("pod/"+pod, "default")
	require.NoError(t, err)
	problem := state.Problem(subject, structured.Features{})
	a, err := problem.NewAllocator(t.Context())
	require.NoError(t, err)
	results, details, err := a.AllocateWithDetails(t.Context(), state.Node(node), problem.Claims)
	require.NoError(t, err)
	var got []string
	for _, result := range results {
		for _, device := range result.Devices.Results {
			got = append(got, device.Device)
		}
	}
	return got, details
}
