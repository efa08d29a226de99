// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/testing/cases"
)

const node = "node-1"

// drawState generates a node with devices of random attributes, and claims for some of the devices.
func drawState(t *rapid.T) *clusterstate.State {
	objects := &clusterstate.Objects{}
	n := rapid.IntRange(0, 20).Draw(t, "devices")
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec = resourceapi.ResourceSliceSpec{
		Driver: "d.example.com", NodeName: ptr.To(node),
		Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}
	names := rapid.SampledFrom([]string{"row", "col", "x", "y", "z", "index", "o.example.com/row", "peers", "id", "topology_x", "topology_y", "resource.kubernetes.io/pcieRoot", "dra.net/numaNode"})
	for i := range n {
		device := resourceapi.Device{Name: fmt.Sprint("d-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		for range rapid.IntRange(0, 5).Draw(t, "attributes") {
			name := names.Draw(t, "name")
			value := resourceapi.DeviceAttribute{IntValue: ptr.To(rapid.OneOf(rapid.Int64Range(-3, 9), rapid.Int64()).Draw(t, "value"))}
			if name == "peers" || name == "id" || rapid.IntRange(0, 9).Draw(t, "text") == 0 {
				value = resourceapi.DeviceAttribute{StringValue: ptr.To(rapid.SampledFrom([]string{"d-0", "d-1,d-2", "d-3, nobody", "<&>", ""}).Draw(t, "string"))}
			}
			device.Attributes[resourceapi.QualifiedName(name)] = value
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	objects.Slices = append(objects.Slices, slice)
	for i := range rapid.IntRange(0, 12).Draw(t, "claims") {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("a-claim-with-a-name-that-is-long-%d", i)}}
		allocation := &resourceapi.AllocationResult{}
		for range rapid.IntRange(0, 3).Draw(t, "allocated") {
			allocation.Devices.Results = append(allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Request: "r", Driver: "d.example.com", Pool: node, Device: fmt.Sprint("d-", rapid.IntRange(0, 20).Draw(t, "device")),
			})
		}
		claim.Status.Allocation = allocation
		objects.Claims = append(objects.Claims, claim)
	}
	return clusterstate.New(objects)
}

// TestAnyDevicesCanBeDrawn checks pictures of devices with random attributes. Each device has a separate place. In an SVG, no
// device covers another device, and each is inside the page.
func TestAnyDevicesCanBeDrawn(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		state := drawState(rt)
		picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{})
		require.NoError(rt, err)
		requireDrawn(rt, picture, len(state.Objects.Slices[0].Spec.Devices))
	})
}

func requireDrawn(t require.TestingT, picture *draw.Picture, devices int) {
	count := 0
	for _, panel := range picture.Panels {
		seen := make(map[[2]int]bool)
		for _, device := range panel.Devices {
			at := [2]int{device.Row, device.Col}
			require.False(t, seen[at], "two devices in one place")
			seen[at] = true
			count++
		}
	}
	require.Equal(t, devices, count)
	var text, svg bytes.Buffer
	require.NoError(t, picture.Text(&text, false))
	require.NoError(t, picture.SVG(&svg))
	requireTidy(t, svg.Bytes(), count)
}

// TestAnyNodesCanBeDrawn draws nodes with random coordinates. Some coordinates are larger than the random lengths of the
// circles.
func TestAnyNodesCanBeDrawn(t *testing.T) {
	coordinate := rapid.OneOf(rapid.Int64Range(-1, 3), rapid.Int64())
	cases.Check(t, func(rt *rapid.T) {
		nodes := make([]draw.Node, rapid.IntRange(1, 12).Draw(rt, "nodes"))
		width := rapid.Int64Range(1, 4).Draw(rt, "width")
		isGrid := rapid.Bool().Draw(rt, "grid")
		for i := range nodes {
			nodes[i] = draw.Node{Name: "node-" + strconv.Itoa(i), Chosen: rapid.Bool().Draw(rt, "chosen"), Unusable: rapid.Bool().Draw(rt, "unusable")}
			nodes[i].At = []int64{int64(i) / width, int64(i) % width}
			if !isGrid {
				nodes[i].At = rapid.SliceOfN(coordinate, 0, 4).Draw(rt, "at")
				nodes[i].Group = rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(rt, "group")
			}
		}
		circles := rapid.SliceOfN(coordinate, 0, 3).Draw(rt, "circles")
		if isGrid {
			circles = []int64{(int64(len(nodes)) + width - 1) / width, width}
		}
		requireDrawn(rt, draw.Nodes("PodGroup ns/g", nodes, circles), len(nodes))
	})
}

type box struct{ x, y, width, height float64 }

func (b box) meets(o box) bool {
	return b.x < o.x+o.width && o.x < b.x+b.width && b.y < o.y+o.height && o.y < b.y+b.height
}

// requireTidy requires that an SVG has a box for each of the devices and that the boxes don't overlap. It returns the width of
// the page.
func requireTidy(t require.TestingT, svg []byte, devices int) float64 {
	var page box
	var boxes []box
	decoder, depth := xml.NewDecoder(bytes.NewReader(svg)), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			switch token.Name.Local {
			case "svg":
				page = box{0, 0, number(t, token, "width"), number(t, token, "height")}
			case "rect":
				b := box{number(t, token, "x"), number(t, token, "y"), number(t, token, "width"), number(t, token, "height")}
				require.True(t, b.x >= 0 && b.y >= 0 && b.x+b.width <= page.width && b.y+b.height <= page.height, "outside of the page")
				if depth == 3 { // in a group
					boxes = append(boxes, b)
				}
			}
		case xml.EndElement:
			depth--
		}
	}
	require.Len(t, boxes, devices)
	for i := range boxes {
		for j := range i {
			require.False(t, boxes[i].meets(boxes[j]), "one device covers another")
		}
	}
	return page.width
}

func number(t require.TestingT, element xml.StartElement, name string) float64 {
	for _, attribute := range element.Attr {
		if attribute.Name.Local == name {
			value, err := strconv.ParseFloat(attribute.Value, 64)
			require.NoError(t, err)
			return value
		}
	}
	require.FailNow(t, "no "+name)
	return 0
}

func TestOwners(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	admin := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "admin"}}
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: "d", Pool: "p", Device: "a"}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}
	result.AdminAccess = ptr.To(true)
	other := result
	other.Device = "b"
	admin.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result, other}}}
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver: "d", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: "p", ResourceSliceCount: 1},
		Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}},
	}}
	state := clusterstate.New(&clusterstate.Objects{
		Claims: []*resourceapi.ResourceClaim{claim, admin}, Slices: []*resourceapi.ResourceSlice{slice},
	})
	options := draw.Options{Claims: []*resourceapi.ResourceClaim{claim}}
	found, err := draw.NodeOf(t.Context(), state, claim, options.Features)
	require.NoError(t, err)
	require.Equal(t, node, found.Name)
	picture, err := draw.New(t.Context(), state, found, options)
	require.NoError(t, err)
	require.Equal(t, []draw.Owner{
		{Claim: "ns/admin", Request: "r", AdminAccess: true}, {Claim: "ns/mine", Request: "r", Chosen: true},
	}, picture.Panels[0].Devices[0].Owners)
	var text strings.Builder
	require.NoError(t, picture.Text(&text, false))
	require.Contains(t, text.String(), "[a *]   [b .]")
	_, err = draw.NodeOf(t.Context(), clusterstate.New(&clusterstate.Objects{}), claim, options.Features)
	require.ErrorContains(t, err, "no node has the devices of claim ns/mine")
}

// pictureOf draws the machine with the name. A claim owns the given devices, each "driver/name".
func pictureOf(t *testing.T, name string, devices ...string) *draw.Picture {
	t.Helper()
	m, err := machine.ByName(name)
	require.NoError(t, err)
	slices, err := m.ResourceSlices(node)
	require.NoError(t, err)
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
	}
	for _, device := range devices {
		driver, name, _ := strings.Cut(device, "/")
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: node, Device: name})
	}
	state := clusterstate.New(&clusterstate.Objects{Slices: slices, Claims: []*resourceapi.ResourceClaim{claim}})
	picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{Claims: []*resourceapi.ResourceClaim{claim}})
	require.NoError(t, err)
	return picture
}

func textOf(t *testing.T, picture *draw.Picture) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, picture.Text(&out, false))
	return out.String()
}

// TestMachinesCanBeDrawn checks the picture of each machine: it shows all devices, and its SVG is narrow enough to be readable
// on a phone.
func TestMachinesCanBeDrawn(t *testing.T) {
	for _, m := range machine.All() {
		t.Run(m.Name, func(t *testing.T) {
			picture := pictureOf(t, m.Name)
			count := 0
			text := textOf(t, picture)
			for _, panel := range picture.Panels {
				for _, device := range panel.Devices {
					require.Contains(t, text, device.Name)
					count++
				}
			}
			require.Len(t, m.Topology(node).Devices, count)
			var svg bytes.Buffer
			require.NoError(t, picture.SVG(&svg))
			width := requireTidy(t, svg.Bytes(), count)
			// Labels are 14 pixels high in the SVG. On a phone with a width of 390 pixels they must be at least 6 pixels high.
			require.LessOrEqual(t, width, 390.0*14/6)
		})
	}
}

// TestCoordinatesOfNeuron checks that the devices of a claim form a block in the picture, and that the picture shows the EFAs
// (network interfaces) of the block.
func TestCoordinatesOfNeuron(t *testing.T) {
	picture := pictureOf(t, "aws-trn1", "neuron.aws.com/neuron-device-4", "neuron.aws.com/neuron-device-5", "dra.net/pci-0000-30-1d-0")
	text := textOf(t, picture)
	require.Contains(t, text, `
[neuron-device-0  .]   [neuron-device-4  *]   [neuron-device-8  .]   [neuron-device-12 .]
[neuron-device-1  .]   [neuron-device-5  *]   [neuron-device-9  .]   [neuron-device-13 .]
[neuron-device-2  .]   [neuron-device-6  .]   [neuron-device-10 .]   [neuron-device-14 .]
[neuron-device-3  .]   [neuron-device-7  .]   [neuron-device-11 .]   [neuron-device-15 .]
`)
	require.Contains(t, text, `
same resource.aws.com/devicegroup1_id
neuron-device-0  .   neuron-device-1  .   pci-0000-10-1d-0 .
neuron-device-2  .   neuron-device-3  .   pci-0000-20-1d-0 .
neuron-device-4  *   neuron-device-5  *   pci-0000-30-1d-0 *
`)
	for _, panel := range picture.Panels {
		require.Equal(t, panel.Driver == "neuron.aws.com", panel.Arrangement == draw.ByCoordinates)
	}
}

// TestSameNamesOfTwoDrivers checks that a picture shows the driver before the device's name if two drivers use the same name.
func TestSameNamesOfTwoDrivers(t *testing.T) {
	slice := func(driver string) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "a", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To("pci0000:10")},
			}}},
		}}
	}
	state := clusterstate.New(&clusterstate.Objects{Slices: []*resourceapi.ResourceSlice{slice("x.test"), slice("y.test")}})
	picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{})
	require.NoError(t, err)
	require.Equal(t, `node node-1

2 devices of x.test and y.test

pci0000:10
[x.test/a .]
[y.test/a .]

. free (2)
`, textOf(t, picture))
}

// TestPlainSVG checks that the picture without styles is the picture with styles, except for the style element. The rules of
// that element are among the rules of Stylesheet.
func TestPlainSVG(t *testing.T) {
	picture := pictureOf(t, "aws-trn1", "neuron.aws.com/neuron-device-0")
	var styled, plain strings.Builder
	require.NoError(t, picture.SVG(&styled))
	require.NoError(t, picture.PlainSVG(&plain))
	before, rest, found := strings.Cut(styled.String(), "  <style>")
	require.True(t, found)
	rules, after, found := strings.Cut(rest, "</style>\n")
	require.True(t, found)
	require.Equal(t, before+after, plain.String())
	for rule := range strings.Lines(rules) {
		require.Contains(t, draw.Stylesheet(), strings.TrimSpace(rule))
	}
}
