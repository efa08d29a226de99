// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
)

const group = "cluster.open-cluster-management.io"

var (
	placements = schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "placements"}
	decisions  = schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "placementdecisions"}
	scores     = schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "addonplacementscores"}
	clusters   = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "managedclusters"}
)

func TestInstall(t *testing.T) {
	controlPlane := env.APIServer(t)
	config := controlPlane.RESTConfig()
	require.NoError(t, hub.Install(t.Context(), config))
	require.NoError(t, hub.Install(t.Context(), config), "a second time")
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)

	t.Run("defaults", func(t *testing.T) { requireDefaults(t, config) })
	t.Run("rejections", func(t *testing.T) { requireRejections(t, config) })
	t.Run("status", func(t *testing.T) { requireStatus(t, c) })
	t.Run("columns", func(t *testing.T) { requireColumns(t, c, config) })
}

// requireDefaults creates an object of each kind, and checks the defaults that the API server sets.
func requireDefaults(t *testing.T, config *rest.Config) {
	manifest, err := os.ReadFile("testdata/objects.yaml")
	require.NoError(t, err)
	objects, err := controlplane.Apply(t.Context(), config, manifest, controlplane.ApplyOptions{})
	require.NoError(t, err)
	want := map[string]string{
		"ManagedCluster":           `{hubAcceptsClient: true, leaseDurationSeconds: 60, taints: [{key: a, effect: NoSelect, timeAdded: "2026-08-01T12:00:00Z"}]}`,
		"ManagedClusterSet":        `{clusterSelector: {selectorType: ExclusiveClusterSetLabel}}`,
		"ManagedClusterSetBinding": `{clusterSet: eu}`,
		"Placement": `
predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}]
prioritizerPolicy: {mode: Additive, configurations: [{weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}
spreadPolicy: {spreadConstraints: [{topologyKey: region, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}
tolerations: [{key: a, operator: Equal}]
decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 100%, decisionGroups: [{groupName: canary, groupClusterSelector: {}}]}}
sortBy: ClusterName
scoreRateLimit: 1m
`,
		"PlacementDecision":   `null`,
		"AddOnPlacementScore": `null`,
	}
	require.Len(t, objects, len(want))
	for _, object := range objects {
		var spec any
		require.NoError(t, yaml.Unmarshal([]byte(want[object.GetKind()]), &spec))
		got, err := json.Marshal(object.Object["spec"])
		require.NoError(t, err)
		expected, err := json.Marshal(spec)
		require.NoError(t, err)
		require.JSONEq(t, string(expected), string(got), object.GetKind())
	}
}

func requireRejections(t *testing.T, config *rest.Config) {
	tests := map[string]struct{ kind, spec, message string }{
		"weight":           {"v1beta1, kind: Placement", `{prioritizerPolicy: {configurations: [{weight: 11, scoreCoordinate: {type: BuiltIn}}]}}`, "should be less than or equal to 10"},
		"kind of score":    {"v1beta1, kind: Placement", `{prioritizerPolicy: {configurations: [{scoreCoordinate: {type: Other}}]}}`, `Unsupported value: "Other"`},
		"no coordinate":    {"v1beta1, kind: Placement", `{prioritizerPolicy: {configurations: [{weight: 1}]}}`, "scoreCoordinate: Required value"},
		"order":            {"v1beta1, kind: Placement", `{sortBy: Age}`, `Unsupported value: "Age"`},
		"rate":             {"v1beta1, kind: Placement", `{scoreRateLimit: soon}`, "should match '^[0-9]+[hms]$'"},
		"name of a group":  {"v1beta1, kind: Placement", `{decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: "a b", groupClusterSelector: {}}]}}}`, "groupName in body should match"},
		"length of groups": {"v1beta1, kind: Placement", `{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 0%}}}`, "clustersPerDecisionGroup in body should match"},
		"skew":             {"v1beta1, kind: Placement", `{spreadPolicy: {spreadConstraints: [{topologyKey: a, topologyKeyType: Label, maxSkew: 0}]}}`, "should be greater than or equal to 1"},
		"effect":           {"v1beta1, kind: Placement", `{tolerations: [{key: a, effect: NoExecute}]}`, `Unsupported value: "NoExecute"`},
		"unknown field":    {"v1beta1, kind: Placement", `{predicate: []}`, ".spec.predicate: field not declared in schema"},
		"type":             {"v1beta1, kind: Placement", `{numberOfClusters: many}`, "numberOfClusters"},
		"taint":            {"v1, kind: ManagedCluster", `{hubAcceptsClient: true, taints: [{key: "a b", effect: NoSelect, timeAdded: null}]}`, "key in body should match"},
		"kind of set":      {"v1beta2, kind: ManagedClusterSet", `{clusterSelector: {selectorType: All}}`, `Unsupported value: "All"`},
		"binding":          {"v1beta2, kind: ManagedClusterSetBinding", `{clusterSet: ""}`, "should be at least 1 chars long"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := "{apiVersion: " + group + "/" + test.kind + ", metadata: {name: refused}, spec: " + test.spec + "}"
			_, err := controlplane.Apply(t.Context(), config, []byte(manifest), controlplane.ApplyOptions{})
			require.ErrorContains(t, err, test.message)
		})
	}
}

// requireStatus writes statuses as controllers and add-ons would. The API server must accept the valid and reject the invalid
// ones.
func requireStatus(t *testing.T, c dynamic.Interface) {
	tests := map[string]struct {
		resource    schema.GroupVersionResource
		namespace   string
		name        string
		wrong, good string
		message     string
	}{
		"score": {
			scores, "default", "resources", `{scores: [{name: cpu, value: 101}]}`, `{scores: [{name: cpu, value: -100}], validUntil: "2026-08-01T12:00:00Z"}`,
			"should be less than or equal to 100",
		},
		"decision": {
			decisions, "default", "web-decision-1", `{decisions: [{reason: x}]}`, `{decisions: [{clusterName: paris, reason: "", score: 5}]}`,
			"clusterName: Required value",
		},
		"claim": {
			clusters, "", "paris", `{conditions: [], version: {}, clusterClaims: [{name: "", value: x}]}`, `{conditions: [], version: {kubernetes: v1.37.2}, clusterClaims: [{name: region, value: eu}]}`,
			"should be at least 1 chars long",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			update := func(status string) error {
				object, err := c.Resource(test.resource).Namespace(test.namespace).Get(t.Context(), test.name, metav1.GetOptions{})
				require.NoError(t, err)
				var value any
				require.NoError(t, yaml.Unmarshal([]byte(status), &value))
				object.Object["status"] = value
				object, err = c.Resource(test.resource).Namespace(test.namespace).UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
				if err == nil {
					got, err := json.Marshal(object.Object["status"])
					require.NoError(t, err)
					want, err := yaml.YAMLToJSON([]byte(status))
					require.NoError(t, err)
					require.JSONEq(t, string(want), string(got), "nothing is dropped")
				}
				return err
			}
			err := update(test.wrong)
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, test.message)
			require.NoError(t, update(test.good))
		})
	}
}

// requireColumns checks the columns that "kubectl get placements" prints.
func requireColumns(t *testing.T, c dynamic.Interface, config *rest.Config) {
	object, err := c.Resource(placements).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(object.Object, int64(3), "status", "numberOfSelectedClusters"))
	require.NoError(t, unstructured.SetNestedSlice(object.Object, []any{map[string]any{
		"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "", "lastTransitionTime": "2026-08-01T12:00:00Z",
	}}, "status", "conditions"))
	_, err = c.Resource(placements).Namespace("default").UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
	require.NoError(t, err)

	for resource, want := range map[string]struct {
		version string
		columns []string
		cells   []any
	}{
		"placements":                {"v1beta1", []string{"Name", "Succeeded", "Reason", "SelectedClusters"}, []any{"web", "True", "AllDecisionsScheduled", 3.0}},
		"managedclusters":           {"v1", []string{"Name", "Hub Accepted", "Managed Cluster URLs", "Joined", "Available", "Age"}, nil},
		"managedclustersets":        {"v1beta2", []string{"Name", "Empty", "Age"}, nil},
		"managedclustersetbindings": {"v1beta2", []string{"Name", "Age"}, nil},
		"placementdecisions":        {"v1beta1", []string{"Name", "Age"}, nil},
		"addonplacementscores":      {"v1alpha1", []string{"Name", "Age"}, nil},
	} {
		table := tableOf(t, config, "/apis/"+group+"/"+want.version+"/"+resource)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			columns = append(columns, column.Name)
		}
		require.Equal(t, want.columns, columns, resource)
		require.Len(t, table.Rows, 1, resource)
		if want.cells != nil {
			require.Equal(t, want.cells, table.Rows[0].Cells)
		}
	}
}

func tableOf(t *testing.T, config *rest.Config, path string) *metav1.Table {
	t.Helper()
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	c, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	raw, err := c.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	table := &metav1.Table{}
	require.NoError(t, json.Unmarshal(raw, table))
	return table
}
