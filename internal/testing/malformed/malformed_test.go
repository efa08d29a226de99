// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package malformed

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// requireDrawn demands that every field of a type is set in some of the objects, down
// to the elements of its lists.
func requireDrawn(t *testing.T, path string, values []reflect.Value) {
	t.Helper()
	var set []reflect.Value
	for _, v := range values {
		if !v.IsZero() {
			set = append(set, v)
		}
	}
	require.NotEmpty(t, set, "%s is never set", path)
	switch of := set[0].Type(); of.Kind() {
	case reflect.Pointer:
		requireDrawn(t, path, each(set, reflect.Value.Elem))
	case reflect.Slice:
		requireDrawn(t, path+"[]", each(set, func(v reflect.Value) reflect.Value { return v.Index(0) }))
	case reflect.Struct:
		for i := range of.NumField() {
			requireDrawn(t, path+"."+of.Field(i).Name, each(set, func(v reflect.Value) reflect.Value { return v.Field(i) }))
		}
	default:
	}
}

func each(values []reflect.Value, do func(reflect.Value) reflect.Value) []reflect.Value {
	var result []reflect.Value
	for _, v := range values {
		result = append(result, do(v))
	}
	return result
}

func TestEveryFieldOfPlacementsIsDrawn(t *testing.T) {
	var specs []reflect.Value
	for seed := range uint64(2000) {
		specs = append(specs, reflect.ValueOf(Placement(random(seed)).Spec))
	}
	requireDrawn(t, "spec", specs)
}

func TestSameSeedSameObjects(t *testing.T) {
	for seed := range uint64(20) {
		require.Equal(t, Placement(random(seed)), Placement(random(seed)))
		require.Equal(t, Cluster(random(seed)), Cluster(random(seed)))
		require.Equal(t, Score(random(seed)), Score(random(seed)))
		require.Equal(t, Set(random(seed)), Set(random(seed)))
		require.Equal(t, Binding(random(seed)), Binding(random(seed)))
		require.Equal(t, Decision(random(seed)), Decision(random(seed)))
	}
}

// Selectors are wrong in some sets and right in more.
func TestSomeAreFine(t *testing.T) {
	const n = 1000
	wrong := 0
	for seed := range uint64(n) {
		if _, err := metav1.LabelSelectorAsSelector(Set(random(seed)).Spec.ClusterSelector.LabelSelector); err != nil {
			wrong++
		}
	}
	require.Greater(t, wrong, n/50)
	require.Less(t, wrong, n/2)
	decided := 0
	for seed := range uint64(n) {
		if _, ok := labels.Set(Decision(random(seed)).Labels).Lookup(clusterv1beta1.PlacementLabel); ok {
			decided++
		}
	}
	require.Greater(t, decided, n/2)
	require.Less(t, decided, n)
}
