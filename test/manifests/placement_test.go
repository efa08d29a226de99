// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/render"
)

const placement = `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: NAME
  namespace: default
  annotations: {celset.dev/placement: "true"}
spec: {}
`

// TestPlacementRuns runs celset-placement with the flags of the rendered Deployment and with exactly the rendered RBAC rights.
// A second run leaves out the component for bindings, so the program has fewer rights.
func TestPlacementRuns(t *testing.T) {
	server := server(t)
	binary := env.Program(t, "celset-placement")
	for _, definition := range rendered(t, "placement/profile-crds") {
		server.store(t, definition.Object)
	}
	for _, overlay := range []string{"placement", "placement-standalone", "placement-clusterprofiles"} {
		t.Run(overlay, func(t *testing.T) {
			objects := rendered(t, "overlays/"+overlay)
			for _, object := range objects {
				server.ensureNamespace(t, object)
				if isAboutRights(object) {
					server.store(t, object.Object)
				}
			}
			args, err := render.Args(find(t, objects, "Deployment", "celset-placement"))
			require.NoError(t, err)
			require.Equal(t, overlay != "placement", slices.Contains(args, "--manage-bindings"))
			require.Equal(t, overlay == "placement-clusterprofiles", slices.Contains(args, "--inventory=ClusterProfile"))
			log := server.runPlacement(t, overlay, binary, args)
			require.NotContains(t, log, "forbidden", "the overlay gives all rights that it takes")
		})
	}
}

// store creates an object in the API server, without a dry run.
func (s *apiServer) store(t *testing.T, object any) {
	t.Helper()
	content, err := yaml.Marshal(object)
	require.NoError(t, err)
	s.ApplyText(t, string(content))
}

// runPlacement runs the program until it has decided a Placement. It returns the program's log.
func (s *apiServer) runPlacement(t *testing.T, name, binary string, args []string) string {
	t.Helper()
	kubeconfig, err := s.KubeconfigFor(env.Placement.Name)
	require.NoError(t, err)
	health := env.FreeAddress(t)
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, append(args, "--kubeconfig="+kubeconfig,
		"--health-probe-bind-address="+health, "--metrics-bind-address="+env.FreeAddress(t))...)
	command.Stdout, command.Stderr = &log, &log
	require.NoError(t, command.Start())
	s.store(t, namedPlacement(t, name))
	decided := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return isUp("http://"+health+"/readyz") && s.isDecided(ctx, name), nil
	})
	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, command.Wait(), &log)
	require.NoError(t, decided, &log)
	return log.String()
}

func namedPlacement(t *testing.T, name string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal(bytes.Replace([]byte(placement), []byte("NAME"), []byte(name), 1), &object))
	return object
}

// isDecided reports whether the Placement's status has conditions.
func (s *apiServer) isDecided(ctx context.Context, name string) bool {
	content, err := s.Client().CoreV1().RESTClient().Get().
		AbsPath("/apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements/" + name).DoRaw(ctx)
	return err == nil && bytes.Contains(content, []byte(`"conditions":[`))
}

func isUp(url string) bool {
	response, err := http.Get(url)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
