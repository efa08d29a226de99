// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/topology/machine"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-celset": main})
}

// TestScripts runs the command as users do. A script finds the files of testdata/fragmented
// and testdata/cluster in its directory. Of the latter node-1 has a ring of 8 devices, node-2 a mesh of 3x3, node-3 a hybrid cube
// mesh of 8. In machine.yaml node-4 is an hgx-h100, see writeMachine. With UPDATE_SCRIPTS=1
// in the environment, the test rewrites what cmp compares with.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			// There is no cluster, whatever the environment of the test says.
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			env.Setenv("HOME", env.WorkDir)
			if err := writeMachine(filepath.Join(env.WorkDir, "machine.yaml")); err != nil {
				return err
			}
			for _, folder := range []string{"cluster", "fragmented"} {
				if err := os.CopyFS(filepath.Join(env.WorkDir, folder), os.DirFS(filepath.Join("testdata", folder))); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
	})
}

// exits runs a program that must end with the exit code: exits 1 kubectl-celset check ...
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failure, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Check(err)
		}
		got = failure.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	ts.Check(conforms(ts.ReadFile("stdout")))
}

// conforms compares structured output with the schema of its kind. Text, and objects of Kubernetes, have none.
func conforms(stdout string) error {
	var document map[string]any
	if yaml.Unmarshal([]byte(stdout), &document) != nil || document["apiVersion"] != output.APIVersion {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("output", fmt.Sprint(document["kind"], ".yaml")))
	if err != nil {
		return err
	}
	schema := &spec.Schema{}
	if err := yaml.UnmarshalStrict(text, schema); err != nil {
		return err
	}
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(document)
	return result.AsError()
}

// TestSchemasRefuse what the commands do not print.
func TestSchemasRefuse(t *testing.T) {
	for _, kind := range []string{output.CheckReport, output.Explanation, output.FragmentationReport, output.GroupExplanation, output.Picture, output.PlacementDecided, output.PlacementReport} {
		begin := "apiVersion: " + output.APIVersion + "\nkind: " + kind + "\n"
		require.ErrorContains(t, conforms(begin), "is required")
		require.ErrorContains(t, conforms(begin+"else: 1"), "else in body is a forbidden property")
	}
	require.Error(t, conforms("apiVersion: "+output.APIVersion+"\nkind: Other\n"))
}

// writeMachine writes what is published on node-4, an hgx-h100, and the claim finetune, which
// has a GPU of it and the rail beside it, as "kubectl get -o yaml" would.
func writeMachine(path string) error {
	m, err := machine.ByName("hgx-h100")
	if err != nil {
		return err
	}
	slices, err := m.ResourceSlices("node-4")
	if err != nil {
		return err
	}
	has := func(driver, device string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "node-4", Device: device}
	}
	objects := []any{&resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "finetune"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{has("gpu.nvidia.com", "gpu-5"), has("dra.net", "pci-0000-d4-00-0")},
		}}},
	}}
	for _, slice := range slices {
		objects = append(objects, slice)
	}
	var content bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		content.WriteString("---\n")
		content.Write(document)
	}
	return os.WriteFile(path, content.Bytes(), 0o600)
}

var example = regexp.MustCompile("(?s)```\n\\$ kubectl celset ([^\n]*)\n(.*?)```")

// What the pages show is what the commands print for the clusters of the scripts. A line
// that ends with dots is the beginning of one, and lines may be left out.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	machine := filepath.Join(t.TempDir(), "machine.yaml")
	require.NoError(t, writeMachine(machine))
	requireShown(t, "kubectl.md", 5, "-f", filepath.Join("testdata", "cluster"), "-f", machine)
	requireShown(t, "preferences.md", 2, "-f", filepath.Join("testdata", "fragmented"))
}

func requireShown(t *testing.T, name string, count int, files ...string) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	examples := example.FindAllStringSubmatch(string(page), -1)
	require.Len(t, examples, count)
	for _, match := range examples {
		t.Run(match[1], func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cli.Run(t.Context(), append(strings.Fields(match[1]), files...), genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
			printed := strings.Split(stdout.String(), "\n")
			for line := range strings.Lines(match[2]) {
				line = strings.TrimRight(line, "\n")
				begin, isCut := strings.CutSuffix(line, "...")
				for len(printed) > 0 && printed[0] != line && (!isCut || !strings.HasPrefix(printed[0], begin)) {
					printed = printed[1:]
				}
				require.NotEmpty(t, printed, "%q is not printed, or not there:\n%s%s", line, &stdout, &stderr)
				printed = printed[1:]
			}
		})
	}
}

// krewPlugin is the manifest of a plugin as krew v1alpha2 has it.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestKrewManifest fills the template in as krew-release-bot does. krew wants a short description of at most 50 characters, and an
// archive with its checksum for each platform.
func TestKrewManifest(t *testing.T) {
	archive := func(address, tag string) string {
		return "uri: " + strings.ReplaceAll(address, "{{ .TagName }}", tag) + "\n    sha256: " + strings.Repeat("a", 64)
	}
	manifest, err := template.New(".krew.yaml").Funcs(template.FuncMap{"addURIAndSha": archive}).ParseFiles(filepath.Join("..", "..", ".krew.yaml"))
	require.NoError(t, err)
	var raw bytes.Buffer
	require.NoError(t, manifest.Execute(&raw, map[string]string{"TagName": "v0.37.2"}))
	var plugin krewPlugin
	require.NoError(t, yaml.UnmarshalStrict(raw.Bytes(), &plugin))
	require.Equal(t, "v0.37.2", plugin.Spec.Version)
	require.Equal(t, "krew.googlecontainertools.github.com/v1alpha2", plugin.APIVersion)
	require.Equal(t, "Plugin", plugin.Kind)
	require.Equal(t, "celset", plugin.Metadata.Name)
	require.LessOrEqual(t, len(plugin.Spec.ShortDescription), 50)
	require.NotEmpty(t, plugin.Spec.Platforms)
	seen := make(map[string]bool)
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		key := labels["os"] + "_" + labels["arch"]
		require.False(t, seen[key], key)
		seen[key] = true
		require.Equal(t, plugin.Spec.Homepage+"/releases/download/"+plugin.Spec.Version+"/kubectl-celset_"+key+".tar.gz", platform.URI)
		require.Len(t, platform.SHA256, 64)
		require.Equal(t, labels["os"] == "windows", strings.HasSuffix(platform.Bin, ".exe"))
		require.Equal(t, "kubectl-celset", strings.TrimSuffix(platform.Bin, ".exe"))
	}
}
