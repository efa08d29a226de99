// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/admission"
)

// config has one environment for all tests because to make one takes many
// milliseconds.
var config = func() placement.Config {
	environment, err := cluster.NewEnvironment(cel.Config{CacheBytes: 1 << 30})
	if err != nil {
		panic(err)
	}
	return placement.Config{Environment: environment}
}()

func newChecker(t testing.TB, all bool) *admission.Checker {
	t.Helper()
	checker, err := admission.NewChecker(admission.Options{All: all, Scheduler: config})
	require.NoError(t, err)
	return checker
}

// ours gives a Placement to celset, and only to it.
func ours() map[string]string {
	return map[string]string{placement.TakeAnnotation: "true", clusterv1beta1.PlacementDisableAnnotation: "true"}
}

// placed returns a Placement of celset's with this spec.
func placed(t testing.TB, spec string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: ours()}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec))
	return object
}

// errorsOf are the errors of a verdict as a user reads them.
func errorsOf(verdict admission.Verdict) []string {
	var result []string
	for _, err := range verdict.Errors {
		result = append(result, err.Error())
	}
	return result
}

// judged is a verdict that nothing interrupted.
func judged(verdict admission.Verdict, err error) admission.Verdict {
	if err != nil {
		panic(err)
	}
	return verdict
}
