// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/admission"
)

// The files in testdata have Placements that users create and change, and the webhook's answers. Fields without a value are the
// same as in [placed]. "go test ./placement/admission -rewrite" updates the answers.

func TestCreate(t *testing.T) { replay(t, "create") }
func TestUpdate(t *testing.T) { replay(t, "update") }

func replay(t *testing.T, name string) {
	alone, shared := newChecker(t, false), newChecker(t, true)
	datadriven.RunTest(t, filepath.Join("testdata", name), func(t *testing.T, d *datadriven.TestData) string {
		var objects []*clusterv1beta1.Placement
		object := placed(t, "{}")
		for text := range strings.SplitSeq(d.Input, "\n---\n") {
			if object = object.DeepCopy(); strings.Contains(text, "spec:") {
				object.Spec = clusterv1beta1.PlacementSpec{}
			}
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
			objects = append(objects, object)
		}
		judge := func(checker *admission.Checker) string {
			if before := object.DeepCopy(); d.Cmd == "create" {
				defer func() { require.Empty(t, cmp.Diff(before, object), "it was modified") }()
				return said(judged(checker.Check(t.Context(), object)))
			}
			return said(judged(checker.CheckUpdate(t.Context(), objects[0], object)))
		}
		if one, all := judge(alone), judge(shared); one != all {
			return fmt.Sprintf("with an annotation only:\n%sof all Placements:\n%s", one, all)
		}
		return judge(alone)
	})
}

// said returns the errors and warnings of a verdict as a user sees them.
func said(verdict admission.Verdict) string {
	text := ""
	for _, err := range errorsOf(verdict) {
		text += "  error: " + strings.ReplaceAll(err, "\n", "\n    ") + "\n"
	}
	for _, warning := range verdict.Warnings {
		text += "  warning: " + warning + "\n"
	}
	if text == "" {
		return "  ok\n"
	}
	return text
}

func TestChecksOfNothing(t *testing.T) {
	checker := newChecker(t, true)
	require.Empty(t, judged(checker.Check(t.Context(), nil)))
	require.Empty(t, judged(checker.CheckUpdate(t.Context(), placed(t, "{}"), nil)))
	require.Len(t, judged(checker.CheckUpdate(t.Context(), nil, placed(t, "numberOfClusters: -1"))).Errors, 1)
}

// config has an environment that all tests share, because creating one takes many milliseconds.
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

// ours returns the annotations of a Placement that celset decides and other schedulers don't.
func ours() map[string]string {
	return map[string]string{wellknown.AnnotationPlacement: "true", clusterv1beta1.PlacementDisableAnnotation: "true"}
}

// placed returns a Placement with this spec that celset decides.
func placed(t testing.TB, spec string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: ours()}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec))
	return object
}

// expressions returns a predicate with these CEL expressions, as YAML.
func expressions(quoted string) string {
	return "{requiredClusterSelector: {celSelector: {celExpressions: [" + quoted + "]}}}"
}

// errorsOf returns the error messages of a verdict.
func errorsOf(verdict admission.Verdict) []string {
	var result []string
	for _, err := range verdict.Errors {
		result = append(result, err.Error())
	}
	return result
}

// judged returns a verdict. It panics if err is set, which means that a context ended.
func judged(verdict admission.Verdict, err error) admission.Verdict {
	if err != nil {
		panic(err)
	}
	return verdict
}
