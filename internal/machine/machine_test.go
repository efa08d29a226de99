// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

// TestClassesCoverDrivers checks that each driver of a machine has a class, and each class selects a driver of the machine.
func TestClassesCoverDrivers(t *testing.T) {
	ofDriver := regexp.MustCompile(`device\.driver == "([^"]*)"`)
	for _, m := range machine.All() {
		var drivers []string
		for _, class := range m.DeviceClasses() {
			match := ofDriver.FindStringSubmatch(class.Spec.Selectors[0].CEL.Expression)
			require.Len(t, match, 2)
			drivers = append(drivers, match[1])
		}
		require.ElementsMatch(t, m.Drivers(), slices.Compact(slices.Sorted(slices.Values(drivers))), m.Name)
	}
}

func TestByName(t *testing.T) {
	names := machine.Names()
	require.True(t, slices.IsSorted(names))
	require.Len(t, slices.Compact(slices.Clone(names)), len(machine.All()))
	for _, name := range names {
		m, err := machine.ByName(name)
		require.NoError(t, err)
		require.Equal(t, name, m.Name)
		require.NotEmpty(t, m.Title)
		require.Empty(t, apivalidation.IsDNS1123Label(name))
	}
	_, err := machine.ByName("dgx")
	require.EqualError(t, err, `machine "dgx": must be one of `+strings.Join(names, ", "))
}

// TestTopologies checks that device names are unique across drivers and links are symmetric. It also checks that topologies are
// reproducible and share no memory.
func TestTopologies(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(machine.All()).Draw(t, "machine")
		node := rapid.StringMatching(`[a-z]{1,5}(-[0-9]{1,12})?`).Draw(t, "node")
		topo, again := m.Topology(node), m.Topology(node)
		require.Equal(t, topology.Machine, topo.Kind)
		require.Empty(t, cmp.Diff(topo, again))
		seen := map[string]bool{}
		for i, d := range topo.Devices {
			require.False(t, seen[d.Name], "%s occurs twice", d.Name)
			seen[d.Name] = true
			for _, neighbor := range d.Neighbors {
				other, found := topo.Device(neighbor)
				require.True(t, found)
				require.Contains(t, other.Neighbors, d.Name)
			}
			clear(d.Attributes)
			require.NotEmpty(t, again.Devices[i].Attributes)
		}
	})
}

// TestNodesDiffer checks that nodes differ in identifiers and addresses only.
func TestNodesDiffer(t *testing.T) {
	for _, m := range machine.All() {
		first, second := m.Topology("node-1"), m.Topology("node-2")
		require.Len(t, second.Devices, len(first.Devices))
		for i, d := range first.Devices {
			other := second.Devices[i]
			require.Equal(t, d.Name, other.Name)
			require.Equal(t, d.Neighbors, other.Neighbors)
			for name, value := range d.Attributes {
				require.Contains(t, other.Attributes, name)
				if unique := regexp.MustCompile(`uuid|serial|deviceID|devicegroup|ipv4`); unique.MatchString(string(name)) {
					require.NotEqual(t, value, other.Attributes[name], "%s of %s", name, d.Name)
				}
			}
		}
	}
}

func TestFeatureGates(t *testing.T) {
	want := map[string][]string{
		"cpu-each": {"DRAListTypeAttributes"}, "cpu-numa": {"DRAConsumableCapacity", "DRAListTypeAttributes"},
		"hgx-h100-cpu": {"DRAConsumableCapacity", "DRAListTypeAttributes"},
	}
	for _, m := range machine.All() {
		require.Equal(t, want[m.Name], m.FeatureGates(), m.Name)
	}
}

// TestNothingNegative checks that a device without a NUMA node publishes no NUMA node, instead of a negative number.
func TestNothingNegative(t *testing.T) {
	for _, m := range machine.All() {
		for _, d := range m.Topology("node-1").Devices {
			for name, attribute := range d.Attributes {
				require.False(t, attribute.IntValue != nil && *attribute.IntValue < 0, "%s of %s", name, d.Name)
			}
		}
	}
}

// devicesOf returns the devices of a driver, in the order of publication.
func devicesOf(t *testing.T, name, driver string) []resourceapi.Device {
	t.Helper()
	m, err := machine.ByName(name)
	require.NoError(t, err)
	slices, err := m.ResourceSlices("node-1")
	require.NoError(t, err)
	var devices []resourceapi.Device
	for _, slice := range slices {
		if slice.Spec.Driver == driver {
			devices = append(devices, slice.Spec.Devices...)
		}
	}
	require.NotEmpty(t, devices)
	return devices
}

// TestFromFile checks that FromFile reads slices as kubectl prints them, and rejects slices that it does not support.
func TestFromFile(t *testing.T) {
	const slice = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d.test, pool: {name: p}, "
	one := slice + "nodeName: a, devices: [{name: x, attributes: {id: {string: '${uuid}'}}}]}\n"
	for want, content := range map[string]string{
		"":                                       one + "---\n{apiVersion: v1, kind: Node}\n---\n---\n" + slice + "nodeName: a, devices: [{name: y}]}\n",
		"there are no devices in ResourceSlices": "{apiVersion: v1, kind: List, items: []}",
		`those of several nodes: ["a" "b"]: keep those of one`:  one + "---\n" + slice + "nodeName: b}\n",
		"device x of d.test is there twice":                     one + "---\n" + one,
		"ResourceSlice s: only devices of a node":               slice + "allNodes: true, devices: [{name: x}]}",
		"without shared counters":                               slice + "nodeName: a, sharedCounters: [{name: c}]}",
		"device x: only attributes, capacity and allowMultiple": slice + "nodeName: a, devices: [{name: x, taints: [{key: k, effect: NoSchedule}]}]}",
		"cannot unmarshal":                                      slice + "devices: 3}",
		"yaml: ":                                                "{",
	} {
		path := filepath.Join(t.TempDir(), "slices.yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		m, err := machine.FromFile(path)
		if want != "" {
			require.ErrorContains(t, err, path+": ")
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		devices := m.Topology("node-1").Devices
		require.Len(t, devices, 2)
		require.Equal(t, "${uuid}", *devices[0].Attributes["id"].StringValue, "no placeholder of a model")
	}
	// FromFile returns the slices of a model unchanged.
	for _, m := range machine.All() {
		published, err := m.ResourceSlices("node-1")
		require.NoError(t, err)
		var content []byte
		for _, slice := range published {
			one, err := json.Marshal(slice)
			require.NoError(t, err)
			content = append(append(content, one...), '\n')
		}
		path := filepath.Join(t.TempDir(), "slices.json")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		again, err := machine.FromFile(path)
		require.NoError(t, err, m.Name)
		republished, err := again.ResourceSlices("node-1")
		require.NoError(t, err)
		require.True(t, equality.Semantic.DeepEqual(published, republished), m.Name)
	}
}
