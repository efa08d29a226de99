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
	"github.com/celset/celset/internal/testing/cases"
)

const node = "node-1"

// drawState has a node with devices of any attributes, and claims that have some of them.
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

// Whatever devices say of themselves, each has a place of its own, and pictures of them
// can be drawn. In an SVG no device covers another, and nothing is outside of the page.
func TestAnyDevicesCanBeDrawn(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		state := drawState(rt)
		picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{})
		require.NoError(rt, err)
		count := 0
		for _, panel := range picture.Panels {
			seen := make(map[[2]int]bool)
			for _, device := range panel.Devices {
				at := [2]int{device.Row, device.Col}
				require.False(rt, seen[at], "two devices in one place")
				seen[at] = true
				count++
			}
		}
		require.Equal(rt, len(state.Objects.Slices[0].Spec.Devices), count)
		var text, svg bytes.Buffer
		require.NoError(rt, picture.Text(&text, false))
		require.NoError(rt, picture.SVG(&svg))
		requireTidy(rt, svg.Bytes(), count)
	})
}

type box struct{ x, y, width, height float64 }

func (b box) meets(o box) bool {
	return b.x < o.x+o.width && o.x < b.x+b.width && b.y < o.y+o.height && o.y < b.y+b.height
}

func requireTidy(t require.TestingT, svg []byte, devices int) {
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
	options := draw.Options{Claim: claim}
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
