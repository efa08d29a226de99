// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm runs the helm of hack/tools/helm, for tests of the chart.
//
//	output, err := helm.Run(t, "template", "celset", helm.Chart(t))
package helm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/tool"
)

// build builds helm at its first call.
var build = sync.OnceValues(func() (string, error) { return tool.Build("helm") })

// Chart returns the path of the chart.
func Chart(t testing.TB) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "manifests", "charts", "celset")
}

// Run runs helm with an empty configuration. helm then reaches no cluster unless a flag names a kubeconfig. Run returns the
// standard output. If helm fails, err contains its messages.
func Run(t testing.TB, args ...string) (output string, err error) {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		return messages.String(), err
	}
	return out.String(), nil
}
