// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// The examples of the proposal "Select clusters with CEL expressions".

func exampleClusterProfile(t *testing.T, file string) {
	const name = "cel-clusterprofile"
	s := newFleet(t, "default")
	s.installClusterProfiles(t)
	s.join(t, "a", traits{})
	applied := s.apply(t, file)
	s.requireSelected(t, name)
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "True "+placement.ReasonEvaluationFailed, "no such key: properties")

	environment, err := cluster.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	predicate := s.live(t, name).Spec.Predicates[0]
	selector, err := environment.Compile(t.Context(), predicate.RequiredClusterSelector, nil)
	require.NoError(t, err)
	profile, err := cluster.Of(applied[0])
	require.NoError(t, err)
	verdict, err := selector.Match(t.Context(), profile, cluster.Hub{})
	require.NoError(t, err)
	require.True(t, verdict.Matches)
}

// installClusterProfiles creates the definition in the module that has the kind.
func (s scene) installClusterProfiles(t testing.TB) {
	t.Helper()
	// A package of it, which the go command gets if it is not there yet; a module it does not.
	output, err := exec.CommandContext(t.Context(), "go", "list", "-find", "-f", "{{.Module.Dir}}", "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1").Output()
	require.NoError(t, err)
	definition, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(output)), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml"))
	require.NoError(t, err)
	_, err = controlplane.Apply(t.Context(), s.RESTConfig(), definition, controlplane.ApplyOptions{})
	require.NoError(t, err)
	probe := []byte("{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: probe}, spec: {clusterManager: {name: probe}}}")
	env.Becomes(t, true, func() bool {
		_, err := controlplane.Apply(t.Context(), s.RESTConfig(), probe, controlplane.ApplyOptions{DryRun: true})
		return err == nil
	})
}
