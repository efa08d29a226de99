// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/story"
)

// kindLabel is a label of pods and claims with the name of their kind.
const kindLabel = "celset.dev/kind"

// extendedResource is the extended resource of the class in testdata/workload.yaml.
const extendedResource corev1.ResourceName = "example.com/mla"

// A kind is a kind of pods: pods with one claim each, or pods that share a claim.
type kind struct {
	name    string
	profile string
	// template is the name of a claim template in testdata/workload.yaml. Empty means that the pods request an extended resource.
	template string
	// pods is the number of pods that share a claim. 0 means that each pod has its own claim.
	pods int
	// devices are the devices of a node that match the claim. size is the number of devices that the claim requests.
	devices topology.Topology
	size    int
	// isSet reports whether devices satisfy the constraint of the claim.
	isSet func(topology.Topology, []string) bool
}

// The devices that each node has.
var (
	ring = story.Ring().Topology
	mesh = made(topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mesh"}, 3, 3))
)

func made(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err) // the sizes are constants, so there is no error
	}
	return t
}

var (
	ringKind     = &kind{name: "ring", profile: env.CelsetProfile, template: "ring", pods: 1, devices: ring, size: 3, isSet: isStretch}
	pairKind     = &kind{name: "pair", profile: env.CelsetProfile, template: "pair", pods: 3, devices: ring, size: 2, isSet: isStretch}
	blockKind    = &kind{name: "block", profile: env.CelsetProfile, template: "block", devices: mesh, size: 4, isSet: isSquare}
	plainKind    = &kind{name: "plain", profile: env.CelsetProfile, template: "plain", devices: ring, size: 2, isSet: isAny}
	stockKind    = &kind{name: "stock", profile: env.StockProfile, template: "plain", pods: 1, devices: ring, size: 2, isSet: isAny}
	extendedKind = &kind{name: "extended", profile: env.CelsetProfile, devices: ring, size: 1, isSet: isAny}
)

var kinds = []*kind{ringKind, pairKind, blockKind, plainKind, stockKind, extendedKind}

func kindNamed(name string) *kind {
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// isStretch reports whether the devices are consecutive on the ring. Like the expressions, it does not treat the first device
// as the successor of the last.
func isStretch(t topology.Topology, names []string) bool {
	return wiring.Contiguous(t, names) && !(slices.Contains(names, t.Devices[0].Name) && slices.Contains(names, t.Devices[len(t.Devices)-1].Name))
}

func isSquare(t topology.Topology, names []string) bool { return wiring.IsBlock(t, names, 2, 2) }

func isAny(topology.Topology, []string) bool { return true }

// fits reports whether a claim of the kind can be satisfied with the free devices. It tries all sets.
func (k *kind) fits(free []string) bool {
	return k.extend(nil, free)
}

func (k *kind) extend(chosen, rest []string) bool {
	if len(chosen) == k.size {
		return k.isSet(k.devices, chosen)
	}
	for i := range rest {
		if k.extend(append(slices.Clone(chosen), rest[i]), rest[i+1:]) {
			return true
		}
	}
	return false
}

// judge returns the mistake in a claim's allocation, or "".
func judge(claim *resourceapi.ResourceClaim) string {
	k := kindNamed(claim.Labels[kindLabel])
	if k == nil {
		k = extendedKind // only claims that the scheduler creates have no label
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
		if result.Driver != k.devices.Drivers()[0] || result.Pool != claim.Status.Allocation.Devices.Results[0].Pool {
			return fmt.Sprintf("has a device of %s in pool %s", result.Driver, result.Pool)
		}
	}
	if len(names) != k.size || !k.isSet(k.devices, names) {
		return fmt.Sprintf("has %v, which is no set of a %s", names, k.name)
	}
	return ""
}

// pod returns a pod of the kind. claim is the name of the claim that it shares, or "".
func (k *kind) pod(name, claim string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kindLabel: k.name}},
		Spec: corev1.PodSpec{
			SchedulerName: k.profile,
			Containers:    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
		},
	}
	main := &pod.Spec.Containers[0]
	if k.template == "" {
		main.Resources.Limits = corev1.ResourceList{extendedResource: *resource.NewQuantity(int64(k.size), resource.DecimalSI)}
		return pod
	}
	entry := corev1.PodResourceClaim{Name: "devices"}
	if claim != "" {
		entry.ResourceClaimName = &claim
	} else {
		entry.ResourceClaimTemplateName = &k.name
	}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{entry}
	main.Resources.Claims = []corev1.ResourceClaim{{Name: entry.Name}}
	return pod
}

// TestSetsAreJudged checks that judge finds wrong allocations. Otherwise the other tests could not find them.
func TestSetsAreJudged(t *testing.T) {
	for _, test := range []struct{ kind, devices, want string }{
		{"ring", "mla-2 mla-3 mla-4", ""},
		{"ring", "mla-0 mla-1 mla-7", "no set of a ring"},
		{"ring", "mla-0 mla-1 mla-3", "no set of a ring"},
		{"pair", "mla-0 mla-1", ""},
		{"pair", "mla-0 mla-2", "no set of a pair"},
		{"block", "mesh-0 mesh-1 mesh-3 mesh-4", ""},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3", "no set of a block"},
		{"plain", "mla-0 mla-5", ""},
		{"plain", "mla-0", "no set of a plain"},
		{"stock", "mla-0 mla-5@elsewhere", "in pool elsewhere"},
		{"plain", "mla-0 mesh-1", "has a device of"},
		{"extended", "mla-3", ""},
		{"", "mla-3 mla-4", "no set of a extended"},
	} {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kindLabel: test.kind}}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for device := range strings.FieldsSeq(test.devices) {
			name, pool, _ := strings.Cut(device, "@")
			prefix, _, _ := strings.Cut(name, "-")
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Driver: prefix + ".example.com", Pool: pool, Device: name,
			})
		}
		got := judge(claim)
		require.True(t, test.want == "" && got == "" || test.want != "" && strings.Contains(got, test.want), "%s %s: %s", test.kind, test.devices, got)
	}
}

// TestKindsKnowTheirSets checks fits. If fits missed sets, the other tests would not notice a pod that waits needlessly.
func TestKindsKnowTheirSets(t *testing.T) {
	for _, test := range []struct {
		kind *kind
		free string
		fits bool
	}{
		{ringKind, "mla-0 mla-2 mla-3 mla-4", true},
		{ringKind, "mla-0 mla-1 mla-3 mla-4 mla-6 mla-7", false}, // the last device and the first are not consecutive
		{blockKind, "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4", true},
		{blockKind, "mesh-0 mesh-1 mesh-2 mesh-3 mesh-5", false},
		{plainKind, "mla-0 mla-7", true},
		{plainKind, "mla-0", false},
	} {
		require.Equal(t, test.fits, test.kind.fits(strings.Fields(test.free)), "%s of %s", test.kind.name, test.free)
	}
}
