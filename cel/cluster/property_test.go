// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/cases"
)

var testEnvironment = func() *Environment {
	result, err := NewEnvironment(cel.Config{CacheBytes: 1 << 30})
	if err != nil {
		panic(err)
	}
	return result
}()

// paths has all fields of a ManagedCluster, and some fields that never exist.
var paths = strings.Fields(`
	.kind .apiVersion .metadata .spec .status .nothing
	.metadata.name .metadata.generateName .metadata.namespace .metadata.uid .metadata.generation .metadata.creationTimestamp
	.metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds .metadata.labels .metadata.labels.a .metadata.labels["version"]
	.metadata.annotations .metadata.finalizers .metadata.finalizers[0] .metadata.ownerReferences .metadata.ownerReferences[0].controller
	.metadata.managedFields .metadata.managedFields[0] .metadata.managedFields[0].time .metadata.managedFields[0].fieldsV1
	.metadata.managedFields[0].fieldsV1["f:status"]["f:n"] .metadata.ownerReferences[1].kind .metadata.nothing .metadata[1] .metadata[true]
	.spec.hubAcceptsClient .spec.leaseDurationSeconds .spec.taints .spec.taints[0] .spec.taints[0].timeAdded .spec.taints[1].effect
	.spec.managedClusterClientConfigs .spec.managedClusterClientConfigs[0].caBundle .spec.managedClusterClientConfigs[0].url
	.status.conditions .status.conditions[0] .status.conditions[0].observedGeneration .status.conditions[0].lastTransitionTime
	.status.capacity .status.capacity.cpu .status.capacity["memory"] .status.capacity.gpu .status.allocatable .status.allocatable.cpu.nothing
	.status.version .status.version.kubernetes .status.clusterClaims .status.clusterClaims[0] .status.clusterClaims[1].value
	.status.clusterClaims[9] .status.clusterClaims["a"] .status.managedNamespaces .status.managedNamespaces[0].name
	.status.managedNamespaces[0].clusterSet .status.managedNamespaces[0].conditions`)

// drawExpression draws an expression whose value does not depend on the order of maps. ordered is true if its cost does not
// depend on this order either.
func drawExpression(t *rapid.T) (text string, ordered bool) {
	one := func() string { return "managedCluster" + rapid.SampledFrom(paths).Draw(t, "path") }
	literal := rapid.SampledFrom([]string{"null", "''", "'a'", "'1.30.4'", "0", "60", "4.0", "true", "[]", "{}", "['a']", "{'a': 'b'}",
		"{'kubernetes': 'v1.30.0'}", "[{'name': 'a', 'value': 'b'}]", "'2026-08-01T12:00:00Z'"}).Draw(t, "literal")
	constant := []string{
		"%[1]s == %[3]s", "%[3]s == %[1]s", "%[1]s != %[2]s", "%[1]s == %[1]s", "%[1]s.size() == 1", "size(%[1]s) > 1", "%[1]s",
		"%[3]s in %[1]s", "%[1]s in [%[2]s, %[3]s]", "type(%[1]s) == map", "type(%[1]s) == list", "type(%[1]s) == string", "type(%[1]s) == int",
		"%[1]s + %[2]s == %[3]s", "%[1]s < %[3]s", "[%[1]s, %[2]s].size() == 2", "{'x': %[1]s}.x == %[2]s", "%[1]s.matches('^v?1')",
		"optional.of(%[1]s).hasValue()", "optional.ofNonZeroValue(%[1]s).hasValue()", "string(%[1]s) == '1.30.4'", "dyn(%[1]s) == dyn(%[2]s)",
		"%[1]s.parseJSON() == %[3]s", "quantity(%[1]s).isGreaterThan(quantity('1'))", "%[1]s[0] == %[3]s", "%[1]s.isSorted()",
		"int(%[1]s) > 0", "timestamp(%[1]s).getFullYear() == 2026", "%[1]s.contains('a')", "ip(%[1]s).family() == 4",
	}
	iterating := []string{
		"%[1]s.exists(k, k == %[3]s)", "%[1]s.all(k, k != %[3]s)", "%[1]s.map(k, k).size() == 1", "%[1]s.filter(k, k == 'a').size() == 1",
		"%[1]s.exists_one(k, k == 'a')", "%[1]s.all(i, v, v != %[3]s)", "%[1]s.transformMap(k, v, v) == %[3]s", "%[1]s.exists(k, v, v == %[2]s)",
		"%[1]s.exists(c, c.name == 'a' && c.value == 'b')", "sets.contains([%[1]s], [%[3]s])", "%[1]s.map(c, c.?value.orValue('')).size() == 2",
	}
	template, ordered := rapid.SampledFrom(append(constant, iterating...)).Draw(t, "template"), true
	for _, iteration := range iterating {
		ordered = ordered && template != iteration
	}
	return fmt.Sprintf(template+"%.0[1]s%.0[2]s%.0[3]s", one(), one(), literal), ordered
}

// converted returns the input for an evaluation on the JSON of the cluster.
func converted(t require.TestingT, object *clusterv1.ManagedCluster) *input {
	data, err := json.Marshal(object)
	require.NoError(t, err)
	content := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(data, &content))
	return &input{Mapper: celtypes.DefaultTypeAdapter.NativeToValue(content).(traits.Mapper), name: object.Name}
}

// TestTypedObjectsLookLikeTheirJSON tests that an expression has the same result, error and cost on the typed object and on its
// JSON.
func TestTypedObjectsLookLikeTheirJSON(t *testing.T) {
	answers := map[string]int{}
	cases.Check(t, func(t *rapid.T) {
		object := managedClusters.Draw(t, "cluster")
		reference := converted(t, object)
		for range 10 {
			text, ordered := drawExpression(t)
			selector, err := testEnvironment.Compile(t.Context(), clusterv1beta1.ClusterSelector{
				CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{text}}}, nil)
			if err != nil {
				require.NotContains(t, err.Error(), "by estimate", "expressions as short as these are cheap enough")
				answers["does not compile"]++
				continue
			}
			want, wantErr := selector.evaluate(t.Context(), reference)
			got, err := selector.Match(t.Context(), New(object), Hub{})
			require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err), text)
			require.Equal(t, want.Matches, got.Matches, text)
			if ordered {
				require.Equal(t, want.Cost, got.Cost, text)
			}
			answers[fmt.Sprintf("matches %v, failed %v", got.Matches, err != nil)]++
		}
	})
	require.Positive(t, answers["matches true, failed false"])
	require.Positive(t, answers["matches false, failed false"])
	require.Positive(t, answers["matches false, failed true"])
}

// TestTypedObjectsAreTheirJSON tests that the typed object equals its JSON as a map.
func TestTypedObjectsAreTheirJSON(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		object := managedClusters.Draw(t, "cluster")
		input, reference := newInput(New(object), Hub{}), converted(t, object)
		require.Equal(t, celtypes.True, input.Equal(reference))
		require.Equal(t, celtypes.True, reference.Equal(input))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		require.Equal(t, celtypes.True, input.Equal((&mapping[untyped]{content})))
		require.Equal(t, reference.Size(), input.Size())

		object.Status.Version.Kubernetes += "x"
		require.Equal(t, celtypes.False, reference.Equal(newInput(New(object), Hub{})))
	})
}

// TestBadInputNeverPanics tests that evaluating any text returns a verdict or a [*cel.Error].
func TestBadInputNeverPanics(t *testing.T) {
	tokens := strings.Fields(`managedCluster . ( ) [ ] { } , : ? == != < && || ! + - * / % in "a" 'b' 1 2.5 -1 true null scores parseJSON size has
		exists all map c , c.name [? .? .orValue( cel.bind( x, semver quantity ip cidr format.named matches \ " ' // \u0000 metadata labels status
		clusterClaims dyn type optional.none() 9223372036854775808 {'a':1} [1] .scores("a") .parseJSON() b"\xff" r"[" """ `)
	compiled := 0
	cases.Check(t, func(t *rapid.T) {
		text, _ := drawExpression(t)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			from, to := rapid.IntRange(0, len(text)).Draw(t, "from"), rapid.IntRange(0, 5).Draw(t, "length")
			text = text[:from] + rapid.OneOf(rapid.SampledFrom(tokens), rapid.String()).Draw(t, "new") + text[min(len(text), from+to):]
		}
		selector, err := testEnvironment.Compile(t.Context(), clusterv1beta1.ClusterSelector{
			CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{text}}}, nil)
		if err == nil {
			compiled++
			_, err = selector.Match(t.Context(), New(&clusterv1.ManagedCluster{}), Hub{})
		}
		if err != nil {
			var failure *cel.Error
			require.ErrorAs(t, err, &failure)
			require.NotContains(t, failure.Message, "internal error", text)
		}
	})
	require.NotZero(t, compiled)
}

// managedClusters draws clusters. Each field of a cluster may be missing, empty or set.
var managedClusters = rapid.Custom(func(t *rapid.T) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{Kind: text1(t), APIVersion: text1(t)},
		ObjectMeta: metadata(t),
		Spec: clusterv1.ManagedClusterSpec{
			HubAcceptsClient:     rapid.Bool().Draw(t, "accepts"),
			LeaseDurationSeconds: rapid.SampledFrom([]int32{0, 60, -1}).Draw(t, "lease"),
			Taints: several(t, func() clusterv1.Taint {
				return clusterv1.Taint{Key: text1(t), Value: text1(t), Effect: clusterv1.TaintEffect(text1(t)), TimeAdded: moment(t)}
			}),
			ManagedClusterClientConfigs: several(t, func() clusterv1.ClientConfig {
				return clusterv1.ClientConfig{URL: text1(t), CABundle: several(t, func() byte { return rapid.Byte().Draw(t, "byte") })}
			}),
		},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:  several(t, func() metav1.Condition { return condition(t) }),
			Capacity:    resources(t),
			Allocatable: resources(t),
			Version:     clusterv1.ManagedClusterVersion{Kubernetes: text1(t)},
			ClusterClaims: several(t, func() clusterv1.ManagedClusterClaim {
				return clusterv1.ManagedClusterClaim{Name: text1(t), Value: text1(t)}
			}),
			ManagedNamespaces: several(t, func() clusterv1.ClusterSetManagedNamespaceConfig {
				return clusterv1.ClusterSetManagedNamespaceConfig{
					ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: text1(t)},
					ClusterSet:             text1(t),
					Conditions:             several(t, func() metav1.Condition { return condition(t) }),
				}
			}),
		},
	}
})

func metadata(t *rapid.T) metav1.ObjectMeta {
	result := metav1.ObjectMeta{
		Name: text1(t), GenerateName: text1(t), Namespace: text1(t), UID: types.UID(text1(t)),
		Generation:        rapid.Int64Range(-1, 1).Draw(t, "generation"),
		CreationTimestamp: moment(t),
		Labels:            labelled(t),
		Annotations:       labelled(t),
		Finalizers:        several(t, func() string { return text1(t) }),
		OwnerReferences: several(t, func() metav1.OwnerReference {
			return metav1.OwnerReference{Kind: text1(t), Controller: rapid.Ptr(rapid.Bool(), true).Draw(t, "controller")}
		}),
		ManagedFields: several(t, func() metav1.ManagedFieldsEntry {
			at := moment(t)
			entry := metav1.ManagedFieldsEntry{Manager: text1(t), Operation: "Update", Time: &at}
			if rapid.Bool().Draw(t, "fields") {
				entry.FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:version":{},"f:n":1}}`)
			}
			return entry
		}),
		DeletionGracePeriodSeconds: rapid.Ptr(rapid.Int64Range(0, 1), true).Draw(t, "grace"),
	}
	if at := moment(t); rapid.Bool().Draw(t, "deleted") {
		result.DeletionTimestamp = &at
	}
	return result
}

func condition(t *rapid.T) metav1.Condition {
	return metav1.Condition{
		Type: text1(t), Status: metav1.ConditionStatus(text1(t)), Reason: text1(t), Message: text1(t),
		ObservedGeneration: rapid.Int64Range(0, 1).Draw(t, "observed"), LastTransitionTime: moment(t),
	}
}

// several draws nil, an empty slice or up to three elements.
func several[E any](t *rapid.T, element func() E) []E {
	n := rapid.IntRange(-1, 3).Draw(t, "n")
	if n < 0 {
		return nil
	}
	result := make([]E, n)
	for i := range result {
		result[i] = element()
	}
	return result
}

func text1(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "b", "version", "v1.30.0", "1.30.4", "ä\n\"<&"}).Draw(t, "text")
}

func labelled(t *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{nil, {}, {"a": "b"}, {"version": "1.30.4", "": "", "b": "a"}}).Draw(t, "labels")
}

func moment(t *rapid.T) metav1.Time {
	return rapid.SampledFrom([]metav1.Time{{}, metav1.NewTime(time.Unix(1785585600, 123).UTC()),
		metav1.NewTime(time.Unix(1785585600, 0).In(time.FixedZone("", 7200)))}).Draw(t, "time")
}

func resources(t *rapid.T) clusterv1.ResourceList {
	return rapid.SampledFrom([]clusterv1.ResourceList{nil, {}, {"cpu": resource.MustParse("7500m")},
		{"cpu": *resource.NewQuantity(4, resource.DecimalSI), "memory": resource.MustParse("1.5Gi"), "gpu": {}}}).Draw(t, "resources")
}
