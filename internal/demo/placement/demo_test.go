// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/demo/placement"
)

// TestDemo shows the demo. That it fails where something is otherwise is tested
// check by check.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true, SkipControllerManager: true,
		// Whoever names the directory of the binaries has built them.
		Prebuilt: os.Getenv(controlplane.BinDirEnv) != "",
		Users:    []controlplane.User{{Name: placement.User}},
	})
	require.NoError(t, err)
	defer cp.Stop()
	controller, err := cp.RESTConfigFor(placement.User)
	require.NoError(t, err)
	rbac, err := os.ReadFile("../../../manifests/placement/rbac.yaml")
	require.NoError(t, err)

	var out, log bytes.Buffer
	err = placement.Run(t.Context(), placement.Options{
		Config: cp.RESTConfig(), Controller: controller, RBAC: rbac, Out: &out, Log: &log,
	})
	require.NoError(t, err, "%s\n%s", &out, &log)
	t.Log(out.String())
	for _, text := range []string{
		"A hub with 200 clusters", "semver(managedCluster.status.version.kubernetes, true)",
		"The evaluation failed on", "The shop is on the backup, checked.", "in 2 PlacementDecisions, checked",
		"undeclared reference to 'managedClusterr'", "read back from the API server and checked, without CEL.",
	} {
		require.Contains(t, out.String(), text)
	}
	require.NotContains(t, log.String(), "forbidden", "the manifest gives all rights that it takes")
	for line := range strings.Lines(out.String()) {
		require.Equal(t, strings.TrimRight(line, " \n")+"\n", line)
	}
}
