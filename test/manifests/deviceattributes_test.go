// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/render"
)

// TestDeviceAttributes checks the schema of DeviceAttributes with a real API server.
func TestDeviceAttributes(t *testing.T) {
	definition, err := os.ReadFile("../../manifests/scheduler/crds/celset.dev_deviceattributes.yaml")
	require.NoError(t, err)
	require.NoError(t, hub.InstallDefinitions(t.Context(), shared.RESTConfig(), definition))
	text, err := os.ReadFile("../../manifests/examples/device-attributes.yaml")
	require.NoError(t, err)
	objects, err := render.Decode(text)
	require.NoError(t, err)
	shared.dryRun(t, objects)
	example := find(t, objects, "DeviceAttributes", "chips")

	t.Run("default", func(t *testing.T) {
		bare := example.DeepCopy()
		unstructured.RemoveNestedField(bare.Object, "spec", "domain")
		content, err := json.Marshal(bare.Object)
		require.NoError(t, err)
		stored, err := controlplane.Apply(t.Context(), shared.RESTConfig(), content, controlplane.ApplyOptions{DryRun: true})
		require.NoError(t, err)
		domain, _, err := unstructured.NestedString(stored[0].Object, "spec", "domain")
		require.NoError(t, err)
		require.Equal(t, v1alpha1.DefaultAttributesDomain, domain)
	})
	t.Run("mistakes", func(t *testing.T) { requireMistakes(t, example) })
	t.Run("status", func(t *testing.T) { requireStatusIsStored(t, example) })
}

// requireMistakes checks that the API server rejects values that violate the schema, and accepts values at the limits.
func requireMistakes(t *testing.T, example *unstructured.Unstructured) {
	rows := func(count int) []any {
		var all []any
		for i := range count {
			all = append(all, map[string]any{"key": fmt.Sprint("k", i), "values": map[string]any{"x": map[string]any{"int": int64(1)}}})
		}
		return all
	}
	row := func(values map[string]any) []any { return []any{map[string]any{"key": "k", "values": values}} }
	attributes := func(count int) []any {
		var all []any
		for i := range count {
			all = append(all, map[string]any{"name": fmt.Sprint("x", i), "expression": "1"})
		}
		return all
	}
	for name, test := range map[string]struct {
		value any
		path  []string
		want  string
	}{
		"most rows":            {rows(1024), []string{"table", "rows"}, ""},
		"too many rows":        {rows(1025), []string{"table", "rows"}, "spec.table.rows: Too many: 1025: must have at most 1024 items"},
		"no rows":              {[]any{}, []string{"table", "rows"}, "should have at least 1 items"},
		"repeated rows":        {append(rows(1), rows(1)...), []string{"table", "rows"}, "duplicate entries for key"},
		"too many attributes":  {attributes(17), []string{"attributes"}, "must have at most 16 items"},
		"no attributes":        {[]any{}, []string{"attributes"}, "should have at least 1 items"},
		"repeated attributes":  {append(attributes(1), attributes(1)...), []string{"attributes"}, "duplicate entries for key"},
		"name of an attribute": {[]any{map[string]any{"name": "a-b", "expression": "1"}}, []string{"attributes"}, "should match"},
		"no expression":        {[]any{map[string]any{"name": "x"}}, []string{"attributes"}, "expression: Required value"},
		"reserved domain":      {"celset.dev", []string{"domain"}, "the domain is reserved"},
		"Kubernetes' domain":   {"resource.kubernetes.io", []string{"domain"}, "the domain is reserved"},
		"domain of the driver": {"chip.example.com", []string{"domain"}, "domain must differ from driver"},
		"no domain":            {"a_b", []string{"domain"}, "should match"},
		"driver":               {"a/b", []string{"driver"}, "should match"},
		"key of the table":     {"uuid", []string{"table", "key"}, "should match"},
		"no value":             {row(map[string]any{"x": map[string]any{}}), []string{"table", "rows"}, "an attribute has exactly one value"},
		"two values":           {row(map[string]any{"x": map[string]any{"int": int64(1), "bool": true}}), []string{"table", "rows"}, "an attribute has exactly one value"},
		"long name in a row":   {row(map[string]any{strings.Repeat("x", 33): map[string]any{"int": int64(1)}}), []string{"table", "rows"}, "at most 32 bytes"},
		"no values":            {row(map[string]any{}), []string{"table", "rows"}, "should have at least 1 properties"},
	} {
		t.Run(name, func(t *testing.T) {
			object := example.DeepCopy()
			require.NoError(t, unstructured.SetNestedField(object.Object, test.value, append([]string{"spec"}, test.path...)...))
			err := shared.apply(t, shared.RESTConfig(), object)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
	empty := example.DeepCopy()
	unstructured.RemoveNestedField(empty.Object, "spec", "table")
	unstructured.RemoveNestedField(empty.Object, "spec", "attributes")
	require.ErrorContains(t, shared.apply(t, shared.RESTConfig(), empty), "attributes or table is required")
}

// requireStatusIsStored writes the largest status. Fields that the schema lacks would be lost.
func requireStatusIsStored(t *testing.T, example *unstructured.Unstructured) {
	client, err := dynamic.NewForConfig(shared.RESTConfig())
	require.NoError(t, err)
	resource := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.DeviceAttributesResource))
	_, err = resource.Create(t.Context(), example, metav1.CreateOptions{})
	require.NoError(t, err)
	stored, err := resource.Get(t.Context(), example.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	object := &v1alpha1.DeviceAttributes{}
	content, err := json.Marshal(stored)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, object))
	second := object.DeepCopy()
	second.Name = "other"
	second.Spec.Attributes[0].Expression = "7"

	node := "node-1"
	slice := &resourceapi.ResourceSlice{}
	slice.Spec = resourceapi.ResourceSliceSpec{Driver: object.Spec.Driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node}}
	for i := range 12 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("chip-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: new(int64(i))},
		}})
	}
	_, report, err := deviceattributes.Apply(t.Context(), []*v1alpha1.DeviceAttributes{object, second}, []*resourceapi.ResourceSlice{slice},
		func(string) (map[string]string, bool) { return object.Spec.NodeSelector.MatchLabels, true })
	require.NoError(t, err)
	want := report.Objects[0].Status(metav1.Unix(1_800_000_000, 0))
	require.Len(t, want.Conditions, 3)
	require.NotNil(t, want.UnmatchedRows)
	require.NotNil(t, want.FailedExpressions)
	require.NotNil(t, want.Conflicts)

	object.Status = want
	content, err = json.Marshal(object)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &stored.Object))
	updated, err := resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	require.NoError(t, err)
	content, err = json.Marshal(updated.Object["status"])
	require.NoError(t, err)
	var got v1alpha1.DeviceAttributesStatus
	require.NoError(t, json.Unmarshal(content, &got))
	wanted, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(wanted), string(content))
	require.Len(t, got.Conditions, 3)
}
