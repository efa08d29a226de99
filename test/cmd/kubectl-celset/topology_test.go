// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/machine"
)

// samples is the folder with the outputs of tools.
var samples = filepath.Join("..", "..", "..", "cmd", "kubectl-celset", "topology", "testdata")

// A walkthrough is a section of a page in docs/hardware that leads from the output of a tool to a set of devices.
type walkthrough struct {
	page, heading string
	// input is the file of the section with the output of the tool. sample is the file in samples.
	input, sample string
	// slices returns the content of slices.yaml, on which the driver publishes no topology.
	slices func(t *testing.T) []byte
	// wants are the devices that the claim gets. The section shows them if shown is set.
	wants []string
	shown bool
}

var walkthroughs = []walkthrough{
	{"gpus.md", "## Links from nvidia-smi", "topo.txt", "hgx-h100.txt", ofMachine("hgx-h100"), []string{"gpu-3", "gpu-0", "gpu-2", "gpu-1"}, true},
	{"gpus.md", "## Links from nvidia-smi", "topo.txt", "v100-cube-mesh.txt", plain("gpu.nvidia.com", "gpu", 8), []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, false},
	{"gpus.md", "## Links from nvidia-smi", "topo.txt", "pcie-8-gpus.txt", plain("gpu.nvidia.com", "gpu", 8), []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, false},
	{"gpus.md", "## Rails from topograph", "rails.yaml", "topograph-rails.yaml", ofMachine("hgx-h100"), []string{"gpu-3", "gpu-0", "pci-0000-c0-00-0", "pci-0000-a2-00-0"}, true},
	{"aws.md", "## trn2: neighbours from neuron-ls", "neuron.json", "trn2.json", plain("neuron.aws.com", "neuron-device", 16),
		[]string{"neuron-device-0", "neuron-device-1", "neuron-device-2", "neuron-device-3"}, true},
	{"tenstorrent.md", "## 4x8 torus", "galaxy.csv", "galaxy.csv", plain("tenstorrent.com", "chip", 32), []string{"chip-0", "chip-1", "chip-8", "chip-9"}, true},
	{"tenstorrent.md", "## A ring", "galaxy.csv", "galaxy.csv", plain("tenstorrent.com", "chip", 32),
		[]string{"chip-0", "chip-1", "chip-2", "chip-3", "chip-4", "chip-5", "chip-6", "chip-7"}, true},
}

var (
	fenced = func(language string) *regexp.Regexp {
		return regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	}
	claims, commands, texts = fenced("yaml"), fenced("sh"), fenced("text")
)

// TestFromToolToDevices runs the three commands of each section, on files as a reader saves them.
func TestFromToolToDevices(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, w := range walkthroughs {
		t.Run(w.sample+" "+w.heading, func(t *testing.T) {
			section := sectionOf(t, w.page, w.heading)
			input, err := os.ReadFile(filepath.Join(samples, w.sample))
			require.NoError(t, err)
			t.Chdir(t.TempDir())
			write := func(name string, content []byte) { require.NoError(t, os.WriteFile(name, content, 0o600)) }
			write(w.input, input)
			write("slices.yaml", w.slices(t))
			write("nodes.yaml", []byte("apiVersion: v1\nkind: Node\nmetadata: {name: node-1, labels: {kubernetes.io/hostname: node-1}}\n"))
			write("claim.yaml", only(t, claims, section))
			lines := strings.Split(strings.TrimSpace(string(only(t, commands, section))), "\n")
			require.Len(t, lines, 3)
			printed := ""
			for _, line := range lines {
				printed = runLine(t, line)
			}
			if w.shown {
				require.Equal(t, string(only(t, texts, section)), printed)
			}
			requireDevices(t, w.wants, lines[2])

			// Without the object, the claim gets nothing.
			require.NotZero(t, exitOf(t, strings.ReplaceAll(lines[2], "-f "+strings.Fields(lines[1])[4]+" ", "")))
		})
	}
}

// TestPagesHaveNoOtherWalkthrough checks that no section with commands is left out.
func TestPagesHaveNoOtherWalkthrough(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "hardware", "*.md"))
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range strings.SplitSeq("\n"+string(content), "\n## ") {
			heading, _, _ := strings.Cut(part, "\n")
			found := false
			for _, w := range walkthroughs {
				found = found || w.page == filepath.Base(file) && w.heading == "## "+heading
			}
			require.Equal(t, strings.Contains(part, "kubectl celset topology from"), found, "%s: %s", file, heading)
		}
	}
}

func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "hardware", page))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n"+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// only returns the only match in a section.
func only(t *testing.T, of *regexp.Regexp, section string) []byte {
	t.Helper()
	found := of.FindAllStringSubmatch(section, -1)
	require.Len(t, found, 1, "%s", of)
	return []byte(found[0][1])
}

// runLine runs a command that must succeed without warnings, and returns its output. The output may go to a file.
func runLine(t *testing.T, line string) string {
	t.Helper()
	line, file, toFile := strings.Cut(line, " > ")
	arguments, ok := strings.CutPrefix(line, "kubectl celset ")
	require.True(t, ok, line)
	var stdout, stderr bytes.Buffer
	code := cli.Run(t.Context(), strings.Fields(arguments), genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
	require.Zero(t, code, "%s\n%s%s", line, &stdout, &stderr)
	require.Empty(t, stderr.String(), line)
	if toFile {
		require.NoError(t, os.WriteFile(file, stdout.Bytes(), 0o600))
	}
	return stdout.String()
}

func exitOf(t *testing.T, line string) int {
	streams := genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	return cli.Run(t.Context(), strings.Fields(strings.TrimPrefix(line, "kubectl celset ")), streams)
}

// requireDevices requires that a command simulate gives the devices.
func requireDevices(t *testing.T, wants []string, line string) {
	t.Helper()
	var report struct {
		output.Meta `json:",inline"`
		Nodes       []struct {
			Fits   bool
			Claims []struct{ Devices []struct{ Device string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(runLine(t, line+" -o json")), &report))
	require.Len(t, report.Nodes, 1)
	require.True(t, report.Nodes[0].Fits)
	var got []string
	for _, device := range report.Nodes[0].Claims[0].Devices {
		got = append(got, device.Device)
	}
	require.Equal(t, wants, got)
}

// plain returns the class and the slice of a driver that publishes names of devices, and nothing that says where they are.
func plain(driver, prefix string, count int) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		slice := &resourceapi.ResourceSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver, NodeName: ptr.To("node-1"), Pool: resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
			},
		}
		for i := range count {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
				Name:       fmt.Sprintf("%s-%d", prefix, i),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"trayID": {IntValue: ptr.To(int64(i / 8))}},
			})
		}
		return document(t, classOf(driver), slice)
	}
}

func ofMachine(name string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		m, err := machine.ByName(name)
		require.NoError(t, err)
		slices, err := m.ResourceSlices("node-1")
		require.NoError(t, err)
		objects := []any{classOf("gpu.nvidia.com"), classOf("dra.net")}
		for _, slice := range slices {
			objects = append(objects, slice)
		}
		return document(t, objects...)
	}
}

func classOf(driver string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
			Expression: fmt.Sprintf("device.driver == '%s'", driver),
		}}}},
	}
}

func document(t *testing.T, objects ...any) []byte {
	t.Helper()
	var content []byte
	for _, object := range objects {
		one, err := yaml.Marshal(object)
		require.NoError(t, err)
		content = append(append(content, "---\n"...), one...)
	}
	return content
}
