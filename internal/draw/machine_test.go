// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

func textValue(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func intValue(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}

// anyMachine generates devices of three drivers that publish random parts of their location.
func anyMachine() *rapid.Generator[topology.Topology] {
	names := rapid.SampledFrom([]resourceapi.QualifiedName{
		"resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode", "dra.net/numaNode", "dra.net/rdma", "cloud.test/group",
	})
	value := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"pci0000:10", "pci0008:00", "pci0018:00", "root", ""}), textValue),
		rapid.Map(rapid.Int64Range(-1, 3), intValue),
		rapid.Map(rapid.Bool(), func(b bool) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{BoolValue: &b} }),
		rapid.Map(rapid.SliceOfN(rapid.Int64Range(0, 2), 1, 2), func(l []int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValues: l} }),
		rapid.Just(resourceapi.DeviceAttribute{StringValues: []string{"pci0000:10", "pci0008:00"}}),
	)
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		topo := topology.Topology{Kind: topology.Machine}
		order := rapid.Permutation([]string{"0", "1", "2", "10", "x", "a-1", "1-a", "00", "011"}).Draw(t, "order")
		for _, name := range order[:rapid.IntRange(0, len(order)).Draw(t, "devices")] {
			topo.Devices = append(topo.Devices, topology.Device{
				Driver:     rapid.SampledFrom([]string{"gpu.test", "dra.net", "cpu.test"}).Draw(t, "driver"),
				Name:       "d-" + name,
				Attributes: rapid.MapOfN(names, value, 0, 4).Draw(t, "attributes"),
			})
		}
		return topo
	})
}

// TestBoardHasAll checks that each device is in exactly one place of a board.
func TestBoardHasAll(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyMachine().Draw(t, "machine")
		board := draw.NewBoard(topo.Devices)
		var names []string
		add := func(devices []topology.Device) {
			for _, d := range devices {
				names = append(names, d.Name)
			}
		}
		for i, node := range board.NUMANodes {
			require.True(t, node.Known || i == len(board.NUMANodes)-1, "what is not known comes last")
			require.NotEmpty(t, len(node.Devices)+len(node.Roots))
			add(node.Devices)
			for _, root := range node.Roots {
				require.NotEmpty(t, root.Devices)
				add(root.Devices)
			}
		}
		add(board.Others)
		var want []string
		for _, d := range topo.Devices {
			want = append(want, d.Name)
		}
		require.ElementsMatch(t, want, names)
	})
}

// TestBoardOrder checks that devices are sorted by driver, RDMA interfaces before other interfaces, and then by number.
func TestBoardOrder(t *testing.T) {
	yes, no := true, false
	root := textValue("pci0000:10")
	device := func(driver, name string, rdma *bool) topology.Device {
		d := topology.Device{Driver: driver, Name: name, Attributes: attributes{"resource.kubernetes.io/pcieRoot": root}}
		if rdma != nil {
			d.Attributes["dra.net/rdma"] = resourceapi.DeviceAttribute{BoolValue: rdma}
		}
		return d
	}
	board := draw.NewBoard([]topology.Device{
		device("gpu.test", "gpu-10", nil), device("dra.net", "nic-1", &no), device("dra.net", "nic-02", &yes),
		device("gpu.test", "gpu-9", nil), device("dra.net", "nic-2", &yes),
	})
	var names []string
	for _, d := range board.NUMANodes[0].Roots[0].Devices {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"gpu-9", "gpu-10", "nic-2", "nic-02", "nic-1"}, names)
	require.Empty(t, board.Others, "an interface beside a GPU is none that nobody wants")
}

func machineNamed(t require.TestingT, name string) topology.Topology {
	m, err := machine.ByName(name)
	require.NoError(t, err)
	return m.Topology("node-1")
}

// TestDrawMachines compares drawings with the files testdata/<name>.txt. The flag -update rewrites the files.
func TestDrawMachines(t *testing.T) {
	for name, marks := range map[string]map[string]draw.Mark{
		"aws-p4d":      taken(chosen("gpu-0", "gpu-1", "pci-0000-10-1b-0"), "infer-1", "gpu-7"),
		"aws-trn1":     chosen("neuron-device-5", "neuron-device-6", "neuron-device-9", "neuron-device-10"),
		"azure-gb300":  nil,
		"azure-mi300x": chosen("gpu-1-128"),
		"cpu-numa":     taken(map[string]draw.Mark{}, "web, db", "cpudevnuma000"),
		"hgx-h100":     taken(chosen("gpu-2", "pci-0000-b6-00-0"), "job-1", "gpu-7", "channel-0", "br-int"),
		"hgx-h100-cpu": nil,
		"intel-gaudi2": chosen("0000-0f-00-0-0x1020"),
		"oci-gb200":    taken(chosen("gpu-0", "pci-0000-03-00-0", "pci-0000-03-00-1"), "job-1", "gpu-2"),
		"tenstorrent":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			requireDrawing(t, "machine-"+name, drawn(t, machineNamed(t, name), marks))
		})
	}
}

// TestDrawAnyMachine checks that each device in use is in exactly one box. The same holds for free devices, unless they are
// only counted in a line. The drawings of real machines must fit on a terminal.
func TestDrawAnyMachine(t *testing.T) {
	real := rapid.Custom(func(t *rapid.T) topology.Topology {
		return machineNamed(t, rapid.SampledFrom(machine.Names()).Draw(t, "machine"))
	})
	cases.Check(t, func(t *rapid.T) {
		topo := rapid.OneOf(anyMachine(), real).Draw(t, "topology")
		marks := map[string]draw.Mark{}
		if len(topo.Devices) > 0 {
			marks = anyMarks(topo).Draw(t, "marks")
		}
		plain := drawn(t, topo, marks)
		folded := map[string]bool{}
		for _, d := range draw.NewBoard(topo.Devices).Others {
			folded[d.Name] = true
		}
		for _, d := range topo.Devices {
			found := regexp.MustCompile(`\[`+regexp.QuoteMeta(d.Name)+` +([a-zA-Z.*#])\]`).FindAllStringSubmatch(plain, -1)
			if len(found) == 0 && folded[d.Name] && marks[d.Name].State == draw.Free {
				continue
			}
			require.Len(t, found, 1, "boxes of %s in\n%s", d.Name, plain)
			require.Equal(t, marks[d.Name].State, stateOf(found[0][1]), "%s in\n%s", d.Name, plain)
		}
		for line := range strings.Lines(plain) {
			text := strings.TrimSuffix(line, "\n")
			require.Equal(t, strings.TrimRight(text, " "), text, "trailing blanks")
			require.False(t, strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }), text)
			if !strings.HasPrefix(text, "+ ") {
				require.LessOrEqual(t, len(text), 100, text)
			}
		}
		var colored bytes.Buffer
		require.NoError(t, draw.Text(&colored, topo, marks, draw.WithColor()))
		require.Equal(t, plain, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(colored.String(), ""))
	})
}

// TestMachineLayout checks that no two devices of a machine share a position of the layout, and that the layout has all links.
func TestMachineLayout(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := rapid.OneOf(anyMachine(), rapid.Just(machineNamed(t, "aws-trn1")), rapid.Just(machineNamed(t, "hgx-h100"))).Draw(t, "topology")
		layout := draw.NewLayout(topo)
		at := map[draw.Point]bool{}
		for i, place := range layout.Positions {
			require.Equal(t, topo.Devices[i].Name, place.Device)
			require.False(t, at[place.At])
			at[place.At] = true
			requireInside(t, layout, place.At)
		}
		require.Len(t, layout.Positions, len(topo.Devices))
		require.Len(t, layout.Links, len(topo.Edges()))
	})
}

func TestTies(t *testing.T) {
	ties, found := draw.FindTies(machineNamed(t, "aws-trn1").Devices)
	require.True(t, found)
	require.EqualValues(t, "resource.aws.com/devicegroup1_id", ties.Attribute)
	require.Len(t, ties.Groups, 8)
	for _, name := range []string{"oci-gb200", "azure-gb300", "hgx-h100-cpu", "example-gpu"} {
		_, found := draw.FindTies(machineNamed(t, name).Devices)
		require.False(t, found, name)
	}
	var out bytes.Buffer
	require.NoError(t, draw.TextOfTies(&out, machineNamed(t, "hgx-h100").Devices, nil))
	require.Empty(t, out.String())
	require.NoError(t, draw.TextOfTies(&out, machineNamed(t, "aws-trn1").Devices, chosen("neuron-device-0"), draw.WithColor()))
	require.Contains(t, out.String(), "\nsame resource.aws.com/devicegroup1_id\n\x1b[1;32mneuron-device-0  *\x1b[0m   neuron-device-1  .   pci-0000-10-1d-0 .\n")
	require.ErrorContains(t, draw.TextOfTies(&out, nil, chosen("nobody")), "draw ties: ")
	require.ErrorContains(t, draw.TextOfTies(brokenWriter{}, machineNamed(t, "aws-trn1").Devices, nil), "broken pipe")
}

// TestManyInterfaces checks that the line with unused interfaces is not wider than the terminal.
func TestManyInterfaces(t *testing.T) {
	topo := machineNamed(t, "hgx-h100")
	for i := range 20 {
		bridge, _ := topo.Device("br-int")
		bridge.Name += strings.Repeat("x", i+1)
		topo.Devices = append(topo.Devices, bridge)
	}
	drawing := drawn(t, topo, nil)
	require.Regexp(t, `\n\+ 25 others of dra.net: br-int, .*, \.\.\.\n`, drawing)
	for line := range strings.Lines(drawing) {
		require.LessOrEqual(t, len(line), 101)
	}
}
