// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
)

// stub is a script that replaces the programs that hack/kind-demo.sh calls. It records its arguments and the objects that are
// applied. If kubectl renders a kustomization, the stub runs the real kubectl.
const stub = `#!/bin/sh
name=$(basename "$0")
echo "$name $*" >> "$CALLS/calls"
case "$name $*" in
"kind version") echo "$KIND_VERSION" ;;
"ko "*) for last; do :; done; echo "kind.local/$(basename "$last"):dev" ;;
"kubectl "*kustomize*) exec "$KUBECTL" "$@" ;;
"kubectl "*" -f -") n=$(ls "$CALLS" | wc -l); cat > "$CALLS/applied-$n.yaml" ;;
esac
`

// runKindDemo runs hack/kind-demo.sh with stubs. If without is not empty, the program of this name is missing. runKindDemo
// returns the calls of the stubs, the applied objects and the output.
func runKindDemo(t *testing.T, without string, env ...string) (calls []string, applied, output string, err error) {
	t.Helper()
	programs, written := t.TempDir(), t.TempDir()
	for _, name := range []string{"docker", "kind", "kubectl", "ko", "make"} {
		if name != without {
			require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(stub), 0o700)) //nolint:gosec // is to be run
		}
	}
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	binaries, err := controlplane.Build(t.Context(), "", t.Output(), controlplane.Kubectl)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "/bin/bash", filepath.Join("..", "..", "hack", "kind-demo.sh"))
	command.Env = append([]string{
		"PATH=" + programs + ":/usr/bin:/bin:" + filepath.Dir(goTool), "HOME=" + os.Getenv("HOME"), "CALLS=" + written,
		"KO=ko", "KUBECTL=" + filepath.Join(binaries, controlplane.Kubectl), "KIND_VERSION=kind v0.33.0 go1.26.0 linux/amd64",
	}, env...)
	printed, err := command.CombinedOutput()
	files, globErr := filepath.Glob(filepath.Join(written, "*"))
	require.NoError(t, globErr)
	for _, file := range files {
		content, readErr := os.ReadFile(file)
		require.NoError(t, readErr)
		if filepath.Base(file) == "calls" {
			calls = strings.Split(strings.TrimSpace(string(content)), "\n")
			continue
		}
		applied += string(content) + "\n---\n"
	}
	return calls, applied, string(printed), err
}

// TestNodesOfKindHaveDevices checks that, for each overlay of the topology driver, the kind cluster has a node that the overlay
// selects.
func TestNodesOfKindHaveDevices(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "manifests", "kind", "cluster.yaml"))
	require.NoError(t, err)
	var config struct {
		Nodes []struct{ Labels map[string]string }
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	for _, overlay := range []string{"ring", "mesh"} {
		set := find(t, rendered(t, "overlays/topology-driver-"+overlay), "DaemonSet", "celset-topology-driver-"+overlay)
		selector, _, err := unstructured.NestedStringMap(set.Object, "spec", "template", "spec", "nodeSelector")
		require.NoError(t, err)
		require.NotEmpty(t, selector)
		require.Contains(t, config.Nodes, struct{ Labels map[string]string }{selector}, overlay)
	}
}

func TestKindDemo(t *testing.T) {
	for env, image := range map[string]string{
		"KUBERNETES=":     "kindest/node:v1.37.0",
		"KUBERNETES=1.34": "kindest/node:v1.34.11",
		"KUBERNETES=1.35": "kindest/node:v1.35.8",
		"KUBERNETES=1.36": "kindest/node:v1.36.4",
		"NODE_IMAGE=mine": "mine",
	} {
		calls, applied, output, err := runKindDemo(t, "", env)
		require.NoError(t, err, output)
		require.Contains(t, calls, "kind create cluster --config manifests/kind/cluster.yaml --image "+image+" --wait 2m")
		require.Contains(t, applied, "image: kind.local/celset-scheduler:dev\n")
		require.Contains(t, applied, "image: kind.local/celset-topology-driver:dev\n")
		require.Equal(t, 2, strings.Count(applied, "    image: busybox:1.37\n    command: [sh, -c, \"env | grep ^CELSET_DEVICE_ | sort; exec sleep infinity\"]\n"))
		require.NotContains(t, applied, "registry.k8s.io/pause")
		for _, document := range strings.Split(applied, "\n---\n") {
			var object map[string]any
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object), document)
		}
		require.Contains(t, output, "kind delete cluster --name celset")
	}
}

func TestKindDemoSaysWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct{ without, env, want string }{
		"no kind":       {without: "kind", want: "kind-demo: kind is not installed"},
		"old kind":      {env: "KIND_VERSION=kind v0.31.0 go1.25.5 linux/amd64", want: "kind v0.31.0 go1.25.5 linux/amd64 is too old for Kubernetes 1.37, which needs kind 0.32 or newer"},
		"other version": {env: "KUBERNETES=1.33", want: "KUBERNETES=1.33: must be 1.34, 1.35, 1.36 or 1.37"},
	} {
		calls, _, output, err := runKindDemo(t, tc.without, tc.env)
		require.Error(t, err, name)
		require.Contains(t, output, tc.want)
		for _, call := range calls {
			require.NotContains(t, call, "create cluster", name)
		}
	}
	_, _, output, err := runKindDemo(t, "", "KIND_VERSION=kind v0.31.0 go1.25.5 linux/amd64", "KUBERNETES=1.36")
	require.NoError(t, err, output)
}
