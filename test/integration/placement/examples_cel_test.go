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
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// The examples of the proposal "Select clusters with CEL expressions".

func exampleKubernetesVersion(t *testing.T, file string) {
	s := newFleet(t, "default")
	s.join(t, "a", traits{version: "v1.30.0"})
	s.join(t, "b", traits{version: "v1.30.1"})
	c := s.join(t, "c", traits{version: "v1.29.0"})
	s.apply(t, file)
	s.requireSelected(t, "cel-kubernetes-version", "a")
	changeStatus(t, s, c, func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1.30.0" })
	s.requireSelected(t, "cel-kubernetes-version", "a", "c")
}

func exampleVersionLabel(t *testing.T, file string) {
	const name = "cel-version-label"
	s := newFleet(t, "default")
	for cluster, version := range map[string]string{"a": "1.30.0", "b": "1.31.12", "c": "1.32.0", "d": "v1.30.0", "e": "1.30"} {
		s.join(t, cluster, traits{labels: map[string]string{"version": version}})
	}
	s.apply(t, file)
	s.requireSelected(t, name, "a", "b")
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "False "+placement.ReasonEvaluationsSucceeded)

	s.join(t, "unlabelled", traits{})
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "True "+placement.ReasonEvaluationFailed, "cluster unlabelled: ERROR: <input>:1:31: no such key: version")
	s.requireSelected(t, name, "a", "b")
}

func exampleVersionClaim(t *testing.T, file string) {
	s := newFleet(t, "default")
	for cluster, version := range map[string]string{"a": "v1.30.4", "b": "v1.31.0", "c": "v1.29.9", "d": "1.30.4"} {
		s.join(t, cluster, traits{claims: map[string]string{"kubeversion.open-cluster-management.io": version, "id.k8s.io": cluster}})
	}
	e := s.join(t, "e", traits{claims: map[string]string{"id.k8s.io": "v1.30.4"}})
	s.apply(t, file)
	s.requireSelected(t, "cel-version-claim", "a", "b")
	changeStatus(t, s, e, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "kubeversion.open-cluster-management.io", Value: "v1.31.7"}}
	})
	s.requireSelected(t, "cel-version-claim", "a", "b", "e")
}

func exampleSemver(t *testing.T, file string) {
	s := newFleet(t, "default")
	for cluster, version := range map[string]string{"a": "v1.30.1", "b": "v1.31", "c": "1.31.0", "d": "v1.30.0", "e": "v1.9.7", "f": "v1.13.0"} {
		s.join(t, cluster, traits{version: version})
	}
	s.apply(t, file)
	s.requireSelected(t, "cel-semver", "a", "b", "c")
}

func exampleScores(t *testing.T, file string) {
	const name = "cel-scores"
	s := newFleet(t, "default")
	for _, cluster := range []string{"cluster1", "cluster2", "cluster3", "cluster4", "cluster5"} {
		s.join(t, cluster, traits{})
	}
	s.apply(t, file) // 8 CPUs and 300Mi on cluster1
	for cluster, quantities := range map[string]string{
		"cluster2": `{"cpuAvailable": "5", "memAvailable": "1.5Gi"}`,
		"cluster3": `{"cpuAvailable": "4", "memAvailable": "1.5Gi"}`,
		"cluster4": `{"cpuAvailable": "5", "memAvailable": "100Mi"}`,
	} {
		s.score(t, s, cluster, "default", "cpuAvailable", 66)
		scores := s.score(t, s, cluster, "default", "memAvailable", 55)
		change(t, s, scores, func(scores *clusterv1alpha1.AddOnPlacementScore) {
			scores.Annotations = map[string]string{quantitiesAnnotation: quantities}
		})
	}
	s.requireSelected(t, name, "cluster1", "cluster2")
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "True "+placement.ReasonEvaluationFailed, "AddOnPlacementScore cluster5/default not found")

	change(t, s, read(t, s, "cluster1", "default", &clusterv1alpha1.AddOnPlacementScore{}), func(scores *clusterv1alpha1.AddOnPlacementScore) {
		scores.Annotations[quantitiesAnnotation] = `{"cpuAvailable": "3", "memAvailable": "300Mi"}`
	})
	s.requireSelected(t, name, "cluster2")
}

const quantitiesAnnotation = cluster.QuantitiesAnnotation

func exampleScoreValue(t *testing.T, file string) {
	const name = "cel-score-value"
	s := newFleet(t, "default")
	for cluster, value := range map[string]int32{"cluster1": 1, "cluster2": 2, "cluster3": -100} {
		s.join(t, cluster, traits{})
		s.score(t, s, cluster, "default", "cpuAvailable", value)
	}
	s.join(t, "cluster4", traits{})
	s.score(t, s, "cluster4", "default", "other", 0)
	s.apply(t, file)
	s.requireSelected(t, name, "cluster1", "cluster3")
	s.score(t, s, "cluster2", "default", "cpuAvailable", 0)
	s.score(t, s, "cluster3", "default", "cpuAvailable", 9)
	s.requireSelected(t, name, "cluster1", "cluster2")
}

func exampleLibrary(t *testing.T, file string) {
	s := newFleet(t, "default")
	s.join(t, "cluster1", traits{})
	s.join(t, "cluster2", traits{})
	s.score(t, s, "cluster2", "cpu-memory", "cpu", 3)
	s.apply(t, file)
	s.requireSelected(t, "cel-library", "cluster1")
	s.requireCondition(t, "cel-library", placement.ConditionEvaluationFailed, "False "+placement.ReasonEvaluationsSucceeded)
}

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
func (s scene) installClusterProfiles(t *testing.T) {
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

func exampleProperties(t *testing.T, file string) {
	const name = "cel-properties"
	gpus := func(h100 string) string {
		return `{"H100": [` + h100 + `], "A100": [{"Standard_NC48ads_A100_v4": 50}]}`
	}
	s := newFleet(t, "default")
	for cluster, claims := range map[string][2]string{
		"a": {"g6.xlarge,Standard_NC48ads_H100,m3-ultramem-32", gpus(`{"Standard_NC48ads_H100_v4": 10}, {"Standard_NC96ads_H100_v4": 2}`)},
		"b": {"g6.xlarge", gpus(`{"Standard_NC96ads_H100_v4": 3}`)},
		"c": {"g6.2xlarge", gpus(`{"Standard_NC96ads_H100_v4": 2}`)},
	} {
		s.join(t, cluster, traits{claims: map[string]string{"sku.node.k8s.io": claims[0], "sku.gpu.kubernetes-fleet.io": claims[1]}})
	}
	d := s.join(t, "d", traits{claims: map[string]string{"sku.node.k8s.io": "g6.xlarge"}})
	s.apply(t, file)
	s.requireSelected(t, name, "a")
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "False "+placement.ReasonEvaluationsSucceeded)

	claim := func(value string) {
		changeStatus(t, s, d, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
				{Name: "sku.node.k8s.io", Value: "g6.xlarge"}, {Name: "sku.gpu.kubernetes-fleet.io", Value: value},
			}
		})
	}
	claim(gpus(`{"Standard_NC96ads_H100_v4": 2}`))
	s.requireSelected(t, name, "a", "d")
	claim(`{"H100": [`)
	s.requireSelected(t, name, "a")
	s.requireCondition(t, name, placement.ConditionEvaluationFailed, "True "+placement.ReasonEvaluationFailed, "cluster d: ")
	s.requireCondition(t, name, clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
}
