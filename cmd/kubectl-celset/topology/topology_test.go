// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// sample reads a file in testdata.
func sample(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(content)
}

// translated returns the only object for an input.
func translated(t *testing.T, format, input string, o Options) *v1alpha1.DeviceAttributes {
	t.Helper()
	objects, warnings, err := Read(format, strings.NewReader(input), o)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Len(t, objects, 1)
	return objects[0]
}

// list returns a list attribute of each row, in the order of the rows.
func list(object *v1alpha1.DeviceAttributes, name string) (lists [][]string) {
	for _, row := range object.Spec.Table.Rows {
		lists = append(lists, row.Values[name].StringValues)
	}
	return lists
}

// ints returns an int attribute of each row, or -1 for a row without the attribute.
func ints(object *v1alpha1.DeviceAttributes, name string) (values []int64) {
	for _, row := range object.Spec.Table.Rows {
		value := int64(-1)
		if v := row.Values[name].IntValue; v != nil {
			value = *v
		}
		values = append(values, value)
	}
	return values
}

func TestNVSwitch(t *testing.T) {
	object := translated(t, "nvidia-smi", sample(t, "hgx-h100.txt"), Options{Name: "hgx"})
	require.Equal(t, "hgx", object.Name)
	require.Equal(t, "gpu.nvidia.com", object.Spec.Driver)
	require.Equal(t, "name", object.Spec.Table.Key)
	require.Len(t, object.Spec.Table.Rows, 8)
	for _, links := range list(object, "links") {
		require.Len(t, links, 7, "NVSwitches join all GPUs")
	}
	require.Equal(t, []int64{0, 0, 0, 0, 1, 1, 1, 1}, ints(object, "numaNode"))
	require.Equal(t, []int64{0, 0, 1, 1, 2, 2, 3, 3}, ints(object, "pcieSwitch"), "a NIC below the same switch joins two GPUs")
	require.Equal(t, [][]string{{"mlx5_0"}, {"mlx5_1"}, {"mlx5_2"}, {"mlx5_3"}, {"mlx5_6"}, {"mlx5_7"}, {"mlx5_8"}, {"mlx5_9"}}, list(object, "nics"))
	require.NotContains(t, object.Spec.Table.Rows[0].Values, "links18", "all pairs have as many NVLinks")
}

func TestCubeMesh(t *testing.T) {
	object := translated(t, "nvidia-smi", sample(t, "v100-cube-mesh.txt"), Options{})
	require.Equal(t, "nvidia-smi", object.Name)
	require.Equal(t, [][]string{
		{"gpu-1", "gpu-2", "gpu-3", "gpu-7"}, {"gpu-0", "gpu-2", "gpu-3", "gpu-6"}, {"gpu-0", "gpu-1", "gpu-3", "gpu-5"}, {"gpu-0", "gpu-1", "gpu-2", "gpu-4"},
		{"gpu-3", "gpu-5", "gpu-6", "gpu-7"}, {"gpu-2", "gpu-4", "gpu-6", "gpu-7"}, {"gpu-1", "gpu-4", "gpu-5", "gpu-7"}, {"gpu-0", "gpu-4", "gpu-5", "gpu-6"},
	}, list(object, "links"))
	for _, links := range list(object, "links2") {
		require.Len(t, links, 2, "each GPU has two double links")
	}
	require.Equal(t, [][]string{nil, nil, {"mlx5_0"}, {"mlx5_0"}, nil, nil, {"mlx5_1"}, {"mlx5_1"}}, list(object, "nics"))
}

func TestPCIe(t *testing.T) {
	input := sample(t, "pcie-8-gpus.txt")
	object := translated(t, "nvidia-smi", input, Options{})
	require.Equal(t, []string{"gpu-1", "gpu-2", "gpu-3"}, list(object, "links")[0], "without NVLink, GPUs of one CPU are linked")
	require.Equal(t, []int64{0, 0, 1, 1, 2, 2, 3, 3}, ints(object, "pcieSwitch"))
	object = translated(t, "nvidia-smi", input, Options{Links: "PIX"})
	require.Equal(t, []string{"gpu-1"}, list(object, "links")[0])
	_, warnings, err := Read("nvidia-smi", strings.NewReader(input), Options{Links: "nvlink"})
	require.NoError(t, err)
	require.Len(t, warnings, 8)
	require.Equal(t, "GPU0 has no link to another GPU, so it gets no attribute links: exclude it with a selector, or count more paths as links with --links", warnings[0])
}

func TestKeysOfGPUs(t *testing.T) {
	input := "index, pci.bus_id\n0, 00000000:1B:00.0\n1, 00000000:AA:00.0\n\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"
	object := translated(t, "nvidia-smi", input, Options{})
	require.Equal(t, "resource.kubernetes.io/pciBusID", object.Spec.Table.Key)
	require.Equal(t, []string{"0000:aa:00.0"}, list(object, "links")[0])
	object = translated(t, "nvidia-smi", input, Options{Key: "gpu.example.com/index", Driver: "gpu.example.com"})
	require.Equal(t, "1", object.Spec.Table.Rows[1].Key)
	require.Equal(t, "gpu.example.com", object.Spec.Driver)
	object = translated(t, "nvidia-smi", input, Options{Key: "name"})
	require.Equal(t, "gpu-1", object.Spec.Table.Rows[1].Key)
}

// TestPastedMatrix checks that blanks instead of tabs and the codes of a terminal change nothing.
func TestPastedMatrix(t *testing.T) {
	input := sample(t, "hgx-h100.txt")
	want := translated(t, "nvidia-smi", input, Options{})
	pasted := strings.ReplaceAll(input, "\t", "    ")
	require.Equal(t, want, translated(t, "nvidia-smi", pasted, Options{}))
	require.Equal(t, want, translated(t, "nvidia-smi", "\x1b[4m"+strings.Replace(input, "\n", "\x1b[0m\r\n", 1), Options{}))
	require.Equal(t, want, translated(t, "nvidia-smi", strings.TrimPrefix(input, "\t"), Options{}))

	// An empty cell before the NUMA node is visible only between tabs.
	tabs := "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPIX\t\t0\t\tN/A\nGPU1\tPIX\t X \t1\t1\t\tN/A\n"
	require.Equal(t, []int64{0, 1}, ints(translated(t, "nvidia-smi", tabs, Options{}), "numaNode"))
	objects, warnings, err := Read("nvidia-smi", strings.NewReader(strings.ReplaceAll(tabs, "\t", "  ")), Options{})
	require.NoError(t, err)
	require.Equal(t, []int64{-1, 1}, ints(objects[0], "numaNode"))
	require.Equal(t, []string{"the NUMA node of some GPUs is not in the output, so they get no attribute numaNode"}, warnings)
}

func TestNeuron(t *testing.T) {
	object := translated(t, "neuron-ls", sample(t, "trn2.json"), Options{})
	require.Equal(t, "neuron.aws.com", object.Spec.Driver)
	require.Len(t, object.Spec.Table.Rows, 16)
	for i, links := range list(object, "links") {
		x, y := i%4, i/4
		var want []string
		for _, step := range [][2]int{{1, 0}, {3, 0}, {0, 1}, {0, 3}} {
			want = append(want, fmt.Sprintf("neuron-device-%d", (x+step[0])%4+(y+step[1])%4*4))
		}
		require.ElementsMatch(t, want, links, "a torus of 4x4")
	}
	require.Equal(t, []int64{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, ints(object, "numaNode"))

	object = translated(t, "neuron-ls", sample(t, "trn2.json"), Options{Key: "neuron.aws.com/deviceId"})
	require.Equal(t, []string{"1", "3", "4", "12"}, list(object, "links")[0])
	object = translated(t, "neuron-ls", `[{"neuron_device": 0, "numa_node": "-1", "connected_to": null}]`, Options{})
	require.NotContains(t, object.Spec.Table.Rows[0].Values, "numaNode")
	require.Equal(t, translated(t, "neuron-ls", sample(t, "trn2.json"), Options{}),
		translated(t, "neuron-ls", `{"instance_type": "trn2n.48xlarge", "neuron_devices": `+sample(t, "trn2.json")+"}", Options{}))
}

func TestRails(t *testing.T) {
	input := sample(t, "topograph-rails.yaml")
	objects, _, err := Read("topograph", strings.NewReader(input), Options{})
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.Equal(t, []string{"dra.net", "gpu.nvidia.com"}, []string{objects[0].Spec.Driver, objects[1].Spec.Driver})
	require.Equal(t, []string{"topograph-1", "topograph-2"}, []string{objects[0].Name, objects[1].Name})
	for i, row := range objects[0].Spec.Table.Rows {
		require.Equal(t, fmt.Sprintf("rail%d", i), *row.Values["rail"].StringValue)
	}
	for i, rails := range list(objects[1], "rails") {
		require.Equal(t, []string{fmt.Sprintf("rail%d", i)}, rails)
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/hostname", Operator: metav1.LabelSelectorOpIn, Values: []string{"node-1", "node-2"}},
	}}
	require.Equal(t, selector, objects[0].Spec.NodeSelector, "both nodes are alike")

	given := &metav1.LabelSelector{MatchLabels: map[string]string{"machine": "hgx"}}
	objects, _, err = Read("topograph", strings.NewReader(input), Options{NodeSelector: given})
	require.NoError(t, err)
	require.Equal(t, given, objects[0].Spec.NodeSelector)

	// Other rails on one node.
	first, second, found := strings.Cut(input, "node-2: |")
	require.True(t, found)
	objects, _, err = Read("topograph", strings.NewReader(first+"node-2: |"+strings.Replace(second, `"0000:a2:00.0": ["rail0"]`, `"0000:a2:00.0": ["rail0", "rail8"]`, 1)), Options{})
	require.NoError(t, err)
	require.Len(t, objects, 3)
	require.Equal(t, []string{"node-1"}, objects[0].Spec.NodeSelector.MatchExpressions[0].Values)
	require.Equal(t, []string{"rail0", "rail8"}, objects[2].Spec.Table.Rows[0].Values["rails"].StringValues)
	require.Equal(t, []string{"node-1", "node-2"}, objects[1].Spec.NodeSelector.MatchExpressions[0].Values, "the GPUs are alike")
}

// TestManyAlikeNodes checks that no node selector lists more nodes than the scheduler accepts.
func TestManyAlikeNodes(t *testing.T) {
	records := map[string]string{}
	for i := range 150 {
		records[fmt.Sprintf("node-%03d", i)] = `{"schemaVersion": "v1alpha1", "nics": {"0000:01:00.0": ["rail0"]}}`
	}
	input, err := yaml.Marshal(map[string]any{"kind": "ConfigMap", "data": records})
	require.NoError(t, err)
	objects, _, err := Read("topograph", bytes.NewReader(input), Options{})
	require.NoError(t, err)
	require.Len(t, objects, 3)
	var nodes []string
	for _, object := range objects {
		require.Equal(t, objects[0].Spec.Table, object.Spec.Table)
		nodes = append(nodes, object.Spec.NodeSelector.MatchExpressions[0].Values...)
	}
	require.Equal(t, slices.Sorted(maps.Keys(records)), nodes)

	objects, _, err = Read("topograph", bytes.NewReader(input), Options{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"machine": "hgx"}}})
	require.NoError(t, err)
	require.Len(t, objects, 1)
}

// TestRejectedObjects checks that no object is written that the scheduler would reject.
func TestRejectedObjects(t *testing.T) {
	for _, c := range []struct {
		o           Options
		input, want string
	}{
		{Options{Driver: "a b"}, "name,x\na,1", `the object csv would have no effect: spec.driver "a b" must be the name of a driver`},
		{Options{Domain: "celset.dev"}, "name,x\na,1", `spec.domain "celset.dev" is reserved`},
		{Options{Domain: "x.example.com."}, "name,x\na,1", `spec.domain "x.example.com." must be a DNS subdomain`},
		{Options{Domain: "X.example.com"}, "name,x\na,1", `spec.domain "X.example.com" must be a DNS subdomain`},
		{Options{Key: "uuid"}, "name,x\na,1", `spec.table.key "uuid" must be "name" or the qualified name of an attribute`},
		{Options{}, "Chip,x\na,1", `spec.table.key "Chip" must be`},
		{Options{}, "name,x:version\na,1.2.3-" + strings.Repeat("a", 60), "has a string of 66 bytes, the limit is 64"},
	} {
		c.o.Driver = cmp.Or(c.o.Driver, "d.example.com")
		_, _, err := Read("csv", strings.NewReader(c.input), c.o)
		require.ErrorContains(t, err, c.want)
	}
	_, _, err := Read("topograph", strings.NewReader("kind: ConfigMap\ndata:\n  -a: '{\"schemaVersion\": \"v1alpha1\", \"nics\": {\"0000:01:00.0\": [\"rail0\"]}}'\n"), Options{})
	require.ErrorContains(t, err, "spec.nodeSelector: values[0][kubernetes.io/hostname]")
}

func TestBlocks(t *testing.T) {
	object := translated(t, "topograph", sample(t, "topograph-blocks.yaml"), Options{})
	require.Nil(t, object.Spec.Table)
	require.Equal(t, "block", object.Spec.Attributes[0].Name)
	require.Equal(t, `{"node-1": "block001", "node-2": "block001", "node-3": "block001", "node-4": "block001", `+
		`"node-5": "block002", "node-6": "block002", "node-7": "block002", "node-9": "block002"}[?node.name]`, object.Spec.Attributes[0].Expression)

	configMap := func(conf string) string {
		content, err := yaml.Marshal(map[string]any{"kind": "ConfigMap", "data": map[string]string{"topology.conf": conf}})
		require.NoError(t, err)
		return string(content)
	}
	objects, _, err := Read("topograph", strings.NewReader(configMap("SwitchName=core Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n[001-900]\nSwitchName=leaf2 Nodes=m[1-2,7]")), Options{})
	require.NoError(t, err)
	require.Len(t, objects, 2, "a long map needs several objects")
	all := ""
	for _, object := range objects {
		require.Equal(t, "switch", object.Spec.Attributes[0].Name)
		require.LessOrEqual(t, len(object.Spec.Attributes[0].Expression), 10240)
		all += object.Spec.Attributes[0].Expression
	}
	require.Equal(t, 903, strings.Count(all, `": "leaf`))
	require.Contains(t, all, `"n007": "leaf1"`)
	require.Contains(t, all, `"m7": "leaf2"`)
}

func TestCSV(t *testing.T) {
	object := translated(t, "csv", sample(t, "galaxy.csv"), Options{Driver: "tenstorrent.com"})
	require.Len(t, object.Spec.Table.Rows, 32)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 0}, ints(object, "x")[:9])

	object = translated(t, "csv", strings.Join([]string{
		"# a comment", "tray,links:strings,slots:ints,spare,rack:string,firmware:version,note", "0,1; 2,3;4,true,7,1.2.3,", "1,0,5,,8,,a", "",
	}, "\n"), Options{Driver: "d.example.com", Key: "d.example.com/trayID"})
	require.Equal(t, "d.example.com/trayID", object.Spec.Table.Key)
	first, second := object.Spec.Table.Rows[0].Values, object.Spec.Table.Rows[1].Values
	require.Equal(t, []string{"1", "2"}, first["links"].StringValues)
	require.Equal(t, []int64{3, 4}, first["slots"].IntValues)
	require.True(t, *first["spare"].BoolValue)
	require.Equal(t, "7", *first["rack"].StringValue)
	require.Equal(t, "1.2.3", *first["firmware"].VersionValue)
	require.NotContains(t, first, "note")
	require.Equal(t, "a", *second["note"].StringValue)
	require.NotContains(t, second, "spare")
}

// TestMalformed checks that an error contains the place, the mistake and advice.
func TestMalformed(t *testing.T) {
	matrix := func(change ...string) string {
		return strings.NewReplacer(change...).Replace("\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV2\tPIX\nGPU1\tNV2\t X \tSYS\nNIC0\tPIX\tSYS\t X \n")
	}
	configMap := func(value string) string {
		return "kind: ConfigMap\ndata:\n  node-1: '" + value + "'\n"
	}
	for _, c := range []struct{ format, input, want string }{
		{"nvidia-smi", "", `no line begins with the columns GPU0, GPU1 and so on: give the output of "nvidia-smi topo -m"`},
		{"nvidia-smi", matrix("PIX", "PIXNODE"), `line 2: GPU0, column NIC0: unknown path "PIXNODE": expected X, NV and a number, PIX, PXB, PHB, NODE or SYS`},
		{"nvidia-smi", matrix("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X SYS\n"), ``},
		{"nvidia-smi", matrix("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X"), `line 3: GPU1 has 2 values for 3 devices: give the output unchanged`},
		{"nvidia-smi", matrix("GPU1\tNV2\t X \tSYS\n", ""), `GPU1 has a column but no row: give the whole output of "nvidia-smi topo -m"`},
		{"nvidia-smi", matrix("GPU1\tNV2", "GPU1\tNV4"), `lines 3 and 2: the path from GPU1 to GPU0 differs from the path back: give the output unchanged`},
		{"nvidia-smi", matrix("PIX\n", "NV4\n"), `line 2: GPU0, column NIC0: "NV4", but only GPUs have NVLinks: give the output unchanged`},
		{"nvidia-smi", matrix("NV2", "X"), `line 2: GPU0, column GPU1: "X", but X stands only where row and column are the same device: give the output unchanged`},
		{"nvidia-smi", matrix() + matrix(), `line 5: a second matrix begins: give the matrix of one machine`},
		{"nvidia-smi", "0, 0000:01:00.0\n" + matrix(), `the input has no PCI address of GPU1: put the output of "nvidia-smi --query-gpu=index,pci.bus_id --format=csv" before the matrix`},
		{"nvidia-smi", "\tGPU0\tGPU0\n", `line 1: column GPU0 occurs twice: give the output unchanged`},
		{"nvidia-smi", "GPU0 " + strings.Repeat("a ", 300), `line 1: 301 columns: at most 256 devices are supported`},
		{"neuron-ls", "[{\n\"neuron_device\": \"a\"}]", `line 2: json: cannot unmarshal string into Go struct field neuronDevice.neuron_device of type int: give the output of "neuron-ls --json-output"`},
		{"neuron-ls", "no json", `line 1: invalid character 'o' in literal null (expecting 'u'): give the output of "neuron-ls --json-output"`},
		{"neuron-ls", "[]", `the input has 0 devices: it must have 1 to 256`},
		{"neuron-ls", `[{}]`, `element 0 has no neuron_device with a number: give the output of "neuron-ls --json-output"`},
		{"neuron-ls", `[{"neuron_device": 1, "connected_to": [2]}]`, `neuron_device 1: connected_to has 2, which is no other device of the input: give the whole output`},
		{"neuron-ls", `[{"neuron_device": 1}, {"neuron_device": 1}]`, `neuron_device 1 occurs twice: give the output of one machine`},
		{"topograph", "kind: Pod", `the input is a "Pod" with 0 entries in data: give a ConfigMap of topograph`},
		{"topograph", configMap("a"), `data[node-1]: neither a record in JSON nor a topology.conf with BlockName= or SwitchName=: give a ConfigMap of topograph`},
		{"topograph", configMap(`{"schemaVersion": "v2"}`), `data[node-1]: schemaVersion "v2": only v1alpha1 is supported: update kubectl celset`},
		{"topograph", configMap(`{"schemaVersion": "v1alpha1"}`), `the ConfigMap has no NIC with a rail, and no block or switch with nodes: give a ConfigMap of topograph`},
		{"topograph", configMap(`{"schemaVersion": "v1alpha1", "gpus": {"a": {"rails": {"r": [{"path": "Q"}]}}}}`),
			`data[node-1]: gpus[a].rails[r]: unknown path "Q": expected X, NV and a number, PIX, PXB, PHB, NODE or SYS`},
		{"topograph", configMap("BlockName=a Nodes=n[4-1]"), `data[node-1]: line 1: Nodes=n[4-1]: "n[4-1]": the range 4-1 must rise, and have at most 10000 numbers`},
		{"topograph", configMap("BlockName=a Nodes=n[1-2"), `data[node-1]: line 1: Nodes=n[1-2: "n[1-2": expected a name with one list of ranges, such as node[1-4]`},
		{"topograph", configMap("BlockName=a Nodes=n[1-9999],m[1-9999]"), `data[node-1]: line 1: Nodes=n[1-9999],m[1-9999]: more than 10000 nodes: at most so many are supported`},
		{"csv", "", `the input is empty: the first line must name the columns, such as name,x,y`},
		{"csv", "name", `line 1: 1 columns: the first column names the key, such as name, and each other column an attribute`},
		{"csv", "name,x", `no line follows the header: write one line for each device`},
		{"csv", "name,x-y\na,1", `line 1: column "x-y": the name of an attribute is a C identifier of at most 32 bytes: rename the column`},
		{"csv", "name,x:float\na,1", `line 1: column "x:float": the type must be one of int, bool, string, version, ints, bools, strings, versions`},
		{"csv", "name,x,x\na,1,2", `line 1: column "x" occurs twice: remove one of them`},
		{"csv", "name,x:int\na,1\nb,z", `line 3, column x: "z" is not an int: correct the cell, or set another type in the header`},
		{"csv", "name,x\na,1\na,2", `line 3: the key "a" is already in line 2: write one line for each device`},
		{"csv", "name,x\na,", `line 2: a line needs a key and at least one value: complete or remove the line`},
		{"csv", "name,x:ints\na,1;;2", `line 2, column x: "1;;2" has an empty value: separate values by one semicolon`},
		{"csv", "name,x\na,1,2", `record on line 2: wrong number of fields`},
		{"csv", "name,x\n" + strings.Repeat("k", 65) + ",1", `the key "` + strings.Repeat("k", 65) + `" has 65 bytes: it must have 1 to 64`},
		{"csv", "name,x\na," + strings.Repeat("v", 65), `row "a", attribute x: "` + strings.Repeat("v", 65) + `" has 65 bytes, but a value has at most 64`},
		{"csv", "name,x:ints,y:ints\na," + strings.Repeat("1;", 30) + "1," + strings.Repeat("1;", 30) + "1",
			`row "a" has 62 values in its attributes and lists: a device has at most 48`},
		{"csv", "name,x\na\x01,1", `the key "a\x01" has a control character or invalid text: correct the key`},
		{"csv", "name,x\na,\xbd", `row "a", attribute x: "�" has a control character or invalid text: correct the value`},
		{"xml", "", `unknown format "xml": must be one of csv, neuron-ls, nvidia-smi, topograph`},
		{"csv", strings.Repeat("a", maxInput+1), `more than 2 MiB, the limit: give the description of one machine`},
	} {
		_, _, err := Read(c.format, strings.NewReader(c.input), Options{Driver: "d.example.com"})
		if c.want == "" {
			require.NoError(t, err, "%q", c.input)
			continue
		}
		require.EqualError(t, err, c.want, "%s: %.100q", c.format, c.input)
	}
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `the input does not name the driver of the devices: set --driver`},
		{Options{Driver: "d", Name: "A"}, `--name "A": a lowercase RFC 1123 subdomain must consist of`},
		{Options{Driver: "d", Domain: "d"}, `--domain "d": a driver alone publishes in its domain: choose another domain`},
	} {
		_, _, err := Read("csv", strings.NewReader("name,x\na,1"), c.o)
		require.ErrorContains(t, err, c.want)
	}
	_, _, err := Read("nvidia-smi", strings.NewReader(sample(t, "hgx-h100.txt")), Options{Links: "far"})
	require.EqualError(t, err, `--links "far": must be one of nvlink, PIX, PXB, PHB, NODE`)
	_, _, err = Read("nvidia-smi", strings.NewReader(sample(t, "hgx-h100.txt")), Options{Key: "a.example.com/uuid"})
	require.EqualError(t, err, `--key "a.example.com/uuid": must be name, an attribute index, or an attribute with the PCI address such as resource.kubernetes.io/pciBusID`)
}

// TestWrite checks that the YAML has the objects and no status.
func TestWrite(t *testing.T) {
	objects, _, err := Read("topograph", strings.NewReader(sample(t, "topograph-rails.yaml")), Options{})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, Write(&text, objects))
	documents := strings.Split(text.String(), "---\n")
	require.Len(t, documents, len(objects))
	for i, document := range documents {
		var read v1alpha1.DeviceAttributes
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &read))
		require.Equal(t, objects[i], &read)
		require.NotContains(t, document, "status")
	}
}

// FuzzRead checks that no input makes a parser panic, and that each object is within the limits of the API.
func FuzzRead(f *testing.F) {
	entries, err := os.ReadDir("testdata")
	require.NoError(f, err)
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		for i := range Formats() {
			f.Add(uint8(i), sample(f, entry.Name()))
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, input string) {
		formats := Formats()
		objects, _, err := Read(formats[int(format)%len(formats)], strings.NewReader(input), Options{Driver: "d.example.com"})
		if err != nil {
			return
		}
		require.NotEmpty(t, objects)
		require.False(t, slices.ContainsFunc(objects, func(object *v1alpha1.DeviceAttributes) bool {
			return (object.Spec.Table == nil || len(object.Spec.Table.Rows) == 0) && len(object.Spec.Attributes) == 0
		}))
		for _, object := range objects {
			require.NoError(t, check(object))
			for _, attribute := range object.Spec.Attributes {
				require.LessOrEqual(t, len(attribute.Expression), 10240)
			}
		}
		require.NoError(t, Write(&bytes.Buffer{}, objects))
	})
}
