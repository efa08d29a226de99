// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

// TestSearchReadsEveryConstraint runs "kubectl celset check" on every constraint on the pages and in manifests. The search must
// understand each, because readers copy them and copies must not be slow.
func TestSearchReadsEveryConstraint(t *testing.T) {
	byPage := map[string]*clusterstate.Objects{}
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if _, ok := elsewhereOf(b); ok {
			continue
		}
		page := b.page
		if b.line == 0 {
			page = "manifests" // an example and its class are in different files, so check all manifests together
		}
		if byPage[page] == nil {
			byPage[page] = &clusterstate.Objects{}
		}
		for _, object := range objects(t, b) {
			switch all := byPage[page]; object.GetKind() {
			case "DeviceClass":
				all.Classes = append(all.Classes, typed[resourceapi.DeviceClass](t, object))
			case "ResourceClaimTemplate":
				all.Templates = append(all.Templates, typed[resourceapi.ResourceClaimTemplate](t, object))
			case "ResourceClaim":
				all.Claims = append(all.Claims, typed[resourceapi.ResourceClaim](t, object))
			}
		}
	}
	constraints := 0
	for page, found := range byPage {
		constraints += requireUnderstood(t, page, found)
	}
	t.Logf("%d constraints", constraints)
	require.Greater(t, constraints, 40)
}

// TestSearchReadsMachines checks the constraints on the hardware pages with the devices of the machines. The devices matter,
// because they determine the cost of an evaluation.
func TestSearchReadsMachines(t *testing.T) {
	for page, examples := range hardwarePages(t) {
		p := readHardwarePage(t, page)
		for _, e := range examples {
			found := &clusterstate.Objects{
				Classes: p.classes, Slices: e.slices,
				Templates: []*resourceapi.ResourceClaimTemplate{p.templates[e.template]},
			}
			constraints := requireUnderstood(t, page+" "+e.template, found)
			require.True(t, e.plain || constraints > 0, "%s %s", page, e.template)
		}
	}
}

func requireUnderstood(t *testing.T, where string, found *clusterstate.Objects) (constraints int) {
	t.Helper()
	report, err := check.Run(t.Context(), clusterstate.New(found), func(any) bool { return true },
		check.Options{Features: allFeatures})
	require.NoError(t, err)
	for _, object := range report.Objects {
		require.Empty(t, object.Errors, "%s: %s", where, object.Name)
		for _, c := range object.Constraints {
			constraints++
			require.NotEmpty(t, c.Type, "%s: %s does not compile", where, c.Source)
			require.False(t, c.TooExpensive, "%s: %s", where, c.Source)
			require.NotEmpty(t, c.Conjuncts)
			for _, conjunct := range c.Conjuncts {
				require.Equal(t, check.Understood, conjunct.Understanding, "%s: %s: %s", where, c.Source, conjunct.Text)
			}
		}
		for _, p := range object.Preferences {
			require.True(t, p.Read || p.Policy != "", "%s: %s", where, p.Source)
		}
	}
	return constraints
}

// TestUpstreamHasNoDevices checks how autoscalers, which use Kubernetes' allocator, see our claims. With all devices free, that
// allocator finds no devices for a claim that refers to a constraint, but finds some for the same claim without the reference.
// For a class with a default constraint it finds devices, because it ignores the default.
func TestUpstreamHasNoDevices(t *testing.T) {
	unseen := 0
	for page, examples := range hardwarePages(t) {
		p := readHardwarePage(t, page)
		for _, e := range examples {
			t.Run(e.template, func(t *testing.T) {
				problem := p.problem(t, e, 0)
				a, err := structured.NewAllocator(t.Context(), problem.Features, structured.AllocatedState{},
					problem.Classes, problem.Slices, problem.Selectors)
				require.NoError(t, err)
				results, err := a.Allocate(t.Context(), node, problem.Claims)
				require.NoError(t, err)
				if !v1alpha1.HasReference(problem.Claims[0]) {
					unseen++
					require.Len(t, results, 1)
					return
				}
				require.Empty(t, results)

				plain := problem.Claims[0].DeepCopy()
				plain.Spec.Devices.Constraints = nil
				problem.Claims[0] = plain
				results, err = a.Allocate(t.Context(), node, problem.Claims)
				require.NoError(t, err)
				require.Len(t, results, 1)
			})
		}
	}
	require.Positive(t, unseen, "no claim with a default")
}

const driver = "x.example.com"

// published returns a device with the attribute row and the capacity memory. Either can be missing.
func published(name string, row *int64, memory string) *device.Device {
	d := &resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
	if row != nil {
		d.Attributes["row"] = resourceapi.DeviceAttribute{IntValue: row}
	}
	if memory != "" {
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	}
	return device.New(driver, d)
}

// withRoots returns a device that publishes its PCIe root both as a scalar and as a list.
func withRoots(name string) *device.Device {
	return device.New(driver, &resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"root":  {StringValue: new("pci0000:10")},
		"roots": {StringValues: []string{"pci0000:10", "pci0000:20"}},
	}})
}

// TestTraps checks the statements about traps of CEL on the page about writing constraints.
func TestTraps(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "constraints.md"))
	require.NoError(t, err)
	begin, end := strings.Index(string(content), "## The traps"), strings.Index(string(content), "## What makes it fast")
	require.Greater(t, end, begin)
	section := regexp.MustCompile(`\s+`).ReplaceAllString(string(content)[begin:end], " ")
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	rows := []*device.Device{published("a", new(int64(1)), "40Gi"), published("b", new(int64(1)), "500m")}
	without := append([]*device.Device{published("c", nil, "")}, rows...)
	lists := []*device.Device{withRoots("d"), withRoots("e")}
	for _, trap := range []struct {
		says       string // text on the page
		expression string
		devices    []*device.Device
		want       string
	}{
		{"`d == o` asks whether they are the same device", `devices[0] == devices[1]`, rows, "false"},
		{"`exists_one` counts one too many", `devices.all(d, devices.exists_one(o, d.attributes['x.example.com'].row == o.attributes['x.example.com'].row))`, rows, "false"},
		{"`&&` and `||` ignore an error on one side", `devices[0].attributes['x.example.com'].row == 1 && false`, without, "false"},
		{"if the other side decides the result", `false && devices[0].attributes['x.example.com'].row == 1`, without, "false"},
		{"Missing attributes** are errors", `true && devices[0].attributes['x.example.com'].row == 1`, without, "no such key"},
		{"`all` and `exists` do the same", `devices.exists(d, d.attributes['x.example.com'].row == 1)`, without, "true"},
		{"`exists_one`, `map`", `devices.exists_one(d, d.attributes['x.example.com'].row == 1)`, without, "no such key"},
		{"`map`, `filter`", `devices.filter(d, d.attributes['x.example.com'].row == 1).size() == 1`, without, "no such key"},
		{"a string is false", `devices[0].attributes['x.example.com'].row == '1'`, rows, "false"},
		{"and `<` an error", `devices[0].attributes['x.example.com'].row < '1'`, rows, "no such overload"},
		{"`==` of a list and a scalar is false", `devices[0].attributes['x.example.com'].roots == devices[1].attributes['x.example.com'].root`, lists, "false"},
		{"is false, without an error", `devices[0].attributes['x.example.com'].root == devices[1].attributes['x.example.com'].roots`, lists, "false"},
		{"`list.includes(value)` works for both", `devices[0].attributes['x.example.com'].roots.includes(devices[1].attributes['x.example.com'].root)`, lists, "true"},
		{"for a scalar, it means `==`", `devices[0].attributes['x.example.com'].root.includes(devices[1].attributes['x.example.com'].root)`, lists, "true"},
		{"a list of scalars never includes a list", `devices[0].attributes['x.example.com'].roots.includes(devices[1].attributes['x.example.com'].roots)`, lists, "false"},
		{"`'10' < '9'`", `'10' < '9'`, rows, "true"},
		{"`sum()`, `max()`", `devices.map(d, d.capacity['x.example.com'].memory).sum() > quantity('1')`, rows, "found no matching overload"},
		{"`asInteger()` is an error for `500m`", `devices[1].capacity['x.example.com'].memory.asInteger() == 1`, rows, "cannot convert value to integer"},
		{"`-1 % 4` is -1", `-1 % 4 == -1`, rows, "true"},
		{"of an empty list are errors", `devices.filter(d, false).map(d, d.attributes['x.example.com'].row).max() == 1`, rows, "empty list"},
	} {
		t.Run(trap.says, func(t *testing.T) {
			require.Contains(t, section, trap.says)
			require.Contains(t, outcome(t, environment, trap.expression, trap.devices), trap.want)
		})
	}
}

// outcome returns the result of the expression for the devices, or the error, as text.
func outcome(t *testing.T, environment *device.Environment, expression string, devices []*device.Device) string {
	t.Helper()
	compiled, err := environment.Compile(t.Context(), expression)
	if err != nil {
		return err.Error()
	}
	satisfied, err := compiled.Satisfied(t.Context(), devices, nil)
	switch {
	case err != nil:
		return err.Error()
	case satisfied:
		return "true"
	default:
		return "false"
	}
}
