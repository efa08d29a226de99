// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/federation"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// placementExamples maps files in manifests/examples/placement to their tests. All other files there are tested by scripts in
// testdata/examples.
var placementExamples = map[string]func(t *testing.T, file string){
	"cel-clusterprofile.yaml": exampleClusterProfile,
	"placementdecision.yaml":  examplePlacementDecision,
	"serviceaccount.yaml":     exampleServiceAccount,
}

// federationExamples maps the files in manifests/examples/federation to their tests.
var federationExamples = map[string]func(t *testing.T, file string){
	"configmap.yaml":   exampleConfigMap,
	"europe.yaml":      exampleEurope,
	"one-cluster.yaml": exampleOneCluster,
	"production.yaml":  exampleProduction,
}

func TestPlacementExamples(t *testing.T)  { runExamples(t, "placement", placementExamples) }
func TestFederationExamples(t *testing.T) { runExamples(t, "federation", federationExamples) }

// runExamples runs the test of every file in a folder. It fails if a file has no test.
func runExamples(t *testing.T, folder string, tests map[string]func(t *testing.T, file string)) {
	files, err := filepath.Glob(env.Manifest(t, "examples", folder, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			if test := tests[name]; test != nil {
				test(t, filepath.Join("examples", folder, name))
				return
			}
			runScript(t, filepath.Join("testdata", "examples", strings.TrimSuffix(name, ".yaml")+".txt"))
		})
	}
}

// documents decodes the objects in a manifest.
func (s scene) documents(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, file))
	require.NoError(t, err)
	var result []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return result
		} else {
			require.NoError(t, err)
		}
		if len(object.Object) > 0 {
			result = append(result, object)
		}
	}
}

// apply does the same as "kubectl apply --server-side" with a manifest, and also writes the status of objects that have one.
// After the test, all objects except namespaces are deleted.
func (s scene) apply(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	for _, object := range s.documents(t, file) {
		if object.GetNamespace() != "" {
			s.open(t, object.GetNamespace())
		}
	}
	content, err := os.ReadFile(env.Manifest(t, file))
	require.NoError(t, err)
	applied, err := controlplane.Apply(t.Context(), s.RESTConfig(), content, controlplane.ApplyOptions{Namespace: s.namespace})
	require.NoError(t, err)
	for i, object := range s.documents(t, file) {
		if applied[i].GetKind() != "Namespace" {
			s.cleanUp(t, applied[i])
		}
		if status, ok := object.Object["status"]; ok {
			applied[i].Object["status"] = status
			require.NoError(t, s.Status().Update(t.Context(), applied[i]))
		}
	}
	return applied
}

// read reads the current version of an object that an example has created.
func read[T client.Object](t testing.TB, s scene, namespace, name string, into T) T {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into))
	return into
}

// The tests below run the examples of the proposal "Select clusters with CEL expressions".

func exampleClusterProfile(t *testing.T, file string) {
	const name = "cel-clusterprofile"
	s := newFleet(t, "default")
	s.installClusterProfiles(t)
	s.join(t, "a", traits{})
	applied := s.apply(t, file)
	s.requireSelected(t, name)
	s.requireCondition(t, name, wellknown.ConditionEvaluationFailed, "True "+wellknown.ReasonEvaluationFailed, "no such key: properties")

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

// installClusterProfiles creates the CustomResourceDefinition in the module of ClusterProfiles.
func (s scene) installClusterProfiles(t testing.TB) {
	t.Helper()
	// Ask for a package, because the go command downloads a missing module only for a package, not for a module path.
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

// The tests below run the examples of the proposal "ClusterSelector Federated Resource Placement".

// federated creates the clusters of the proposal with their labels.
func federated(t *testing.T) scene {
	t.Helper()
	s := newScene(t, "")
	for name, labels := range map[string]map[string]string{
		"eu-prod": {"location": "europe", "environment": "prod"},
		"eu-test": {"location": "europe", "environment": "qa"},
		"us-dev":  {"location": "usa", "environment": "dev"},
		"us-prod": {"location": "usa", "environment": "prod"},
		"bare":    nil,
		"test15":  {"someLabel": "", "environment": "qa"},
	} {
		s.join(t, name, traits{labels: labels})
	}
	return s
}

// requireDistributed applies an example where "test15" and "us-dev" already have the object.
func requireDistributed(t *testing.T, file string, selected, deleted []string) {
	t.Helper()
	s := federated(t)
	applied := s.apply(t, file)
	require.Len(t, applied, 1)
	var list clusterv1.ManagedClusterList
	require.NoError(t, s.List(t.Context(), &list))
	selector, err := federation.ParseAnnotations(applied[0].GetAnnotations())
	require.NoError(t, err)
	var clusters []federation.Cluster
	var matching []string
	for i := range list.Items {
		c := &list.Items[i]
		clusters = append(clusters, federation.Cluster{Name: c.Name, Labels: c.Labels, Present: c.Name == "test15" || c.Name == "us-dev"})
		verdict, err := selector.Clusters().Match(t.Context(), cluster.New(c), cluster.Hub{})
		require.NoError(t, err)
		if verdict.Matches {
			matching = append(matching, c.Name)
		}
	}
	got, err := federation.Distribute(applied[0].GetAnnotations(), clusters)
	require.NoError(t, err)
	require.Equal(t, federation.Distribution{Selected: selected, Deleted: deleted}, got)
	require.Equal(t, selected, matching, "the selector that all selections use")
}

func exampleConfigMap(t *testing.T, file string) {
	requireDistributed(t, file, []string{"eu-prod"}, []string{"test15", "us-dev"})
}

func exampleEurope(t *testing.T, file string) {
	requireDistributed(t, file, []string{"eu-prod", "eu-test"}, []string{"test15", "us-dev"})
}

func exampleOneCluster(t *testing.T, file string) {
	requireDistributed(t, file, []string{"test15"}, []string{"us-dev"})
}

func exampleProduction(t *testing.T, file string) {
	requireDistributed(t, file, []string{"bare", "eu-prod", "us-prod"}, []string{"test15", "us-dev"})
}

// The tests below run the examples of the proposal "Placement extensible scheduling".

const (
	cpuRatio = "cpuratio"
)

// best returns the spec of a Placement that selects the n clusters with the best scores.
func best(n int, resource, name string, weight int) string {
	return fmt.Sprintf(`
numberOfClusters: %d
prioritizerPolicy:
  mode: Exact
  configurations:
  - {scoreCoordinate: {type: AddOn, addOn: {resourceName: %s, scoreName: %s}}, weight: %d}
`, n, resource, name, weight)
}

// fail makes a cluster unavailable by its taint.
func (s scene) fail(t testing.TB, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = unavailable })
}

// mend removes the taint that fail adds.
func (s scene) mend(t testing.TB, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })
}

// scores returns the clusters in the decisions of a Placement with their scores, as text.
func (s scene) scores(t testing.TB, name string) string {
	t.Helper()
	var text string
	for _, decision := range s.decisions(t, name) {
		text += fmt.Sprintf("%s:%d ", decision.ClusterName, decision.Score)
	}
	return text
}
