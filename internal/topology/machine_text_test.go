// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/internal/topology/machine"
)

func machineNamed(t require.TestingT, name string) topology.Topology {
	m, err := machine.ByName(name)
	require.NoError(t, err)
	return m.Topology("node-1")
}

// TestDrawMachines compares with testdata/<name>.txt, which -update rewrites.
func TestDrawMachines(t *testing.T) {
	for name, marks := range map[string]map[string]topology.Mark{
		"aws-p4d":      taken(chosen("gpu-0", "gpu-1", "pci-0000-10-1b-0"), "infer-1", "gpu-7"),
		"aws-trn1":     chosen("neuron-device-5", "neuron-device-6", "neuron-device-9", "neuron-device-10"),
		"azure-gb300":  nil,
		"azure-mi300x": chosen("gpu-1-128"),
		"cpu-numa":     taken(map[string]topology.Mark{}, "web, db", "cpudevnuma000"),
		"hgx-h100":     taken(chosen("gpu-2", "pci-0000-b6-00-0"), "job-1", "gpu-7", "channel-0", "br-int"),
		"hgx-h100-cpu": nil,
		"intel-gaudi2": chosen("0000-0f-00-0-0x1020"),
		"oci-gb200":    taken(chosen("gpu-0", "pci-0000-03-00-0", "pci-0000-03-00-1"), "job-1", "gpu-2"),
		"tenstorrent":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			got := draw(t, machineNamed(t, name), marks)
			golden := filepath.Join("testdata", "machine-"+name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "run the test with -update to create the file")
			require.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")), "run with -update if that is intended")
		})
	}
}

// TestDrawAnyMachine: devices that somebody has are in a box, once, and so are free ones that
// are not folded into a line. Real machines fit into a terminal.
func TestDrawAnyMachine(t *testing.T) {
	real := rapid.Custom(func(t *rapid.T) topology.Topology {
		return machineNamed(t, rapid.SampledFrom(machine.Names()).Draw(t, "machine"))
	})
	cases.Check(t, func(t *rapid.T) {
		topo := rapid.OneOf(anyMachine(), real).Draw(t, "topology")
		marks := map[string]topology.Mark{}
		if len(topo.Devices) > 0 {
			marks = anyMarks(topo).Draw(t, "marks")
		}
		plain := draw(t, topo, marks)
		folded := map[string]bool{}
		for _, d := range topology.NewBoard(topo.Devices).Others {
			folded[d.Name] = true
		}
		for _, d := range topo.Devices {
			found := regexp.MustCompile(`\[`+regexp.QuoteMeta(d.Name)+` +([a-zA-Z.*#])\]`).FindAllStringSubmatch(plain, -1)
			if len(found) == 0 && folded[d.Name] && marks[d.Name].State == topology.Free {
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
		require.NoError(t, topology.Draw(&colored, topo, marks, topology.WithColor()))
		require.Equal(t, plain, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(colored.String(), ""))
	})
}

// TestMachineLayout: places are as those of other kinds.
func TestMachineLayout(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := rapid.OneOf(anyMachine(), rapid.Just(machineNamed(t, "aws-trn1")), rapid.Just(machineNamed(t, "hgx-h100"))).Draw(t, "topology")
		layout := topo.Layout()
		at := map[topology.Point]bool{}
		for i, place := range layout.Places {
			require.Equal(t, topo.Devices[i].Name, place.Device)
			require.False(t, at[place.At])
			at[place.At] = true
			requireInside(t, layout, place.At)
		}
		require.Len(t, layout.Places, len(topo.Devices))
		require.Len(t, layout.Links, len(topo.Edges()))
	})
}

func TestTies(t *testing.T) {
	ties, found := topology.FindTies(machineNamed(t, "aws-trn1").Devices)
	require.True(t, found)
	require.EqualValues(t, "resource.aws.com/devicegroup1_id", ties.Attribute)
	require.Len(t, ties.Groups, 8)
	for _, name := range []string{"oci-gb200", "azure-gb300", "hgx-h100-cpu", "example-gpu"} {
		_, found := topology.FindTies(machineNamed(t, name).Devices)
		require.False(t, found, name)
	}
	var out bytes.Buffer
	require.NoError(t, topology.DrawTies(&out, machineNamed(t, "hgx-h100").Devices, nil))
	require.Empty(t, out.String())
	require.NoError(t, topology.DrawTies(&out, machineNamed(t, "aws-trn1").Devices, chosen("neuron-device-0"), topology.WithColor()))
	require.Contains(t, out.String(), "\nsame resource.aws.com/devicegroup1_id\n\x1b[1;32mneuron-device-0  *\x1b[0m   neuron-device-1  .   pci-0000-10-1d-0 .\n")
	require.ErrorContains(t, topology.DrawTies(&out, nil, chosen("nobody")), "draw ties: ")
	require.ErrorContains(t, topology.DrawTies(brokenWriter{}, machineNamed(t, "aws-trn1").Devices, nil), "broken pipe")
}

// TestManyInterfaces: the line of those that nobody wants ends where the terminal does.
func TestManyInterfaces(t *testing.T) {
	topo := machineNamed(t, "hgx-h100")
	for i := range 20 {
		bridge, _ := topo.Device("br-int")
		bridge.Name += strings.Repeat("x", i+1)
		topo.Devices = append(topo.Devices, bridge)
	}
	drawing := draw(t, topo, nil)
	require.Regexp(t, `\n\+ 25 others of dra.net: br-int, .*, \.\.\.\n`, drawing)
	for line := range strings.Lines(drawing) {
		require.LessOrEqual(t, len(line), 101)
	}
}
