// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/transcript"
)

func TestParseJSON(t *testing.T)                       { selectors(t, "parsejson") }
func TestProposal(t *testing.T)                        { selectors(t, "proposal") }
func TestSelectByScores(t *testing.T)                  { selectors(t, "selectbyscores") }
func TestAbsentFields(t *testing.T)                    { selectors(t, "absent") }
func TestLibraries(t *testing.T)                       { selectors(t, "libraries") }
func TestNotInTheLibraries(t *testing.T)               { selectors(t, "nolibraries") }
func TestBadConstantsFailWhereTheyMatter(t *testing.T) { selectors(t, "badconstants") }
func TestScores(t *testing.T)                          { selectors(t, "scores") }
func TestExpiredScores(t *testing.T)                   { selectors(t, "expired") }
func TestQuantities(t *testing.T)                      { selectors(t, "quantities") }
func TestSets(t *testing.T)                            { selectors(t, "sets") }
func TestScoresReceiver(t *testing.T)                  { selectors(t, "receiver") }
func TestExponentsAreCut(t *testing.T)                 { selectors(t, "exponents") }
func TestLabelsAndClaims(t *testing.T)                 { selectors(t, "labels") }
func TestCompileErrors(t *testing.T)                   { selectors(t, "compileerrors") }

// TestNow compares the results of expressions, and whether the results depend on the time, with a transcript.
func TestNow(t *testing.T) { selectors(t, "now") }

// selectors evaluates the inputs of a transcript. An input is an expression, or "select" and a whole selector. The lines before
// an input set up the evaluation: "on" changes [cluster1], "score" adds a score, and "at" sets the time.
func selectors(t *testing.T, name string) {
	t.Helper()
	var object metav1.Object = cluster1()
	var scores []*clusterv1alpha1.AddOnPlacementScore
	at := now
	transcript.Run(t, filepath.Join("testdata", name+".txt"), func(t *testing.T, input string) string {
		directive, rest, _ := strings.Cut(input, " ")
		var err error
		switch directive {
		case "on":
			changed := cluster1()
			switch object, scores = changed, nil; rest {
			case "nothing":
				object = &clusterv1.ManagedCluster{}
			case "the ClusterProfile bravelion":
				object = bravelion()
			default:
				err = yaml.UnmarshalStrict([]byte(rest), changed)
			}
		case "score":
			one := score("default")
			err = yaml.UnmarshalStrict([]byte(rest), one)
			scores = append([]*clusterv1alpha1.AddOnPlacementScore{one}, scores...)
		case "at":
			at, err = time.Parse(time.RFC3339Nano, rest)
		default:
			on := hub(scores...)
			on.Now = at
			return selected(t, input, object, on)
		}
		require.NoError(t, err)
		return ""
	})
}

// selected returns the result of an expression on an object. It checks that the result on the object's JSON is the same.
func selected(t *testing.T, expression string, object metav1.Object, on cluster.Hub) string {
	t.Helper()
	said := expressions(expression)
	if text, is := strings.CutPrefix(expression, "select "); is {
		said = clusterv1beta1.ClusterSelector{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &said))
	}
	selector, err := environment.Compile(t.Context(), said, nil)
	if err != nil {
		return "does not compile: " + describeError(err)
	}
	content, err := json.Marshal(object)
	require.NoError(t, err)
	untyped := &unstructured.Unstructured{}
	require.NoError(t, utiljson.Unmarshal(content, &untyped.Object))
	var results []string
	for _, form := range []metav1.Object{object, untyped} {
		of, err := cluster.Of(form)
		require.NoError(t, err)
		verdict, err := selector.Match(t.Context(), of, on)
		require.True(t, len(said.CelSelector.CelExpressions) > 0 || verdict.Cost == 0, "it costs nothing without CEL")
		result := fmt.Sprint(verdict.Matches)
		if err != nil {
			require.False(t, verdict.Matches)
			result = describeError(err)
		}
		if verdict.Timed {
			result += ", at this time"
		}
		results = append(results, result)
	}
	require.Equal(t, results[0], results[1])
	return results[0]
}

// describeError returns the reason, the position and the first line of the message of a CEL error, and the text of any other error.
func describeError(err error) string {
	failure, ok := errors.AsType[*cel.Error](err)
	if !ok {
		return err.Error()
	}
	message, _, _ := strings.Cut(failure.Message, "\n")
	if failure.Line == 0 {
		return fmt.Sprintf("%s: %s", failure.Reason, message)
	}
	return fmt.Sprintf("%s at %d:%d: %s", failure.Reason, failure.Line, failure.Column, message)
}

func item(name string, value int32) clusterv1alpha1.AddOnPlacementScoreItem {
	return clusterv1alpha1.AddOnPlacementScoreItem{Name: name, Value: value}
}

func TestScoresThatAreNoneFail(t *testing.T) {
	_, err := matches(t, `managedCluster.scores("broken").size() == 0`, cluster.New(cluster1()), hub())
	require.ErrorIs(t, err, errBroken)
	_, err = matches(t, `managedCluster.scores("default").size() == 0`, cluster.New(cluster1()), cluster.Hub{})
	require.ErrorContains(t, err, "not found")
}

func TestScoresExpireByTheClockIfNoTimeIsGiven(t *testing.T) {
	for offset, want := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		scores := score("default")
		scores.Status.ValidUntil = &metav1.Time{Time: time.Now().Add(offset)}
		on := hub(scores)
		on.Now = time.Time{}
		matched, _ := matches(t, `managedCluster.scores("default") == []`, cluster.New(cluster1()), on)
		require.Equal(t, want, matched)
	}
}

func TestScoreNames(t *testing.T) {
	for name, test := range map[string]struct {
		expressions []string
		names       []string
		computed    bool
	}{
		"none":               {expressions: []string{`managedCluster.metadata.name == "scores"`}},
		"no CEL":             {},
		"sets":               {expressions: []string{`managedCluster.sets("a", "b", 8).now > 0`, `managedCluster.sets("c" + "d", "e", 8).idle > 0`}, names: []string{"celset-sets"}},
		"one":                {expressions: []string{`managedCluster.scores("a").size() == 1`}, names: []string{"a"}},
		"several":            {expressions: []string{`managedCluster.scores("a") == managedCluster.scores("b")`, `managedCluster.scores("c") == []`}, names: []string{"a", "b", "c"}},
		"in a macro":         {expressions: []string{`[managedCluster].all(c, c.scores("a") == [])`}, names: []string{"a"}},
		"never evaluated":    {expressions: []string{`true || managedCluster.scores("a") == []`}, names: []string{"a"}},
		"computed":           {expressions: []string{`managedCluster.scores("a" + "b") == []`}, computed: true},
		"computed and known": {expressions: []string{`["a", "b"].all(n, managedCluster.scores(n) == []) && managedCluster.scores("c") == []`}, names: []string{"c"}, computed: true},
	} {
		t.Run(name, func(t *testing.T) {
			names := compile(t, expressions(test.expressions...)).ScoreNames()
			require.ElementsMatch(t, test.names, names.Names.UnsortedList())
			require.Equal(t, test.computed, names.Computed)
			for _, known := range test.names {
				require.True(t, names.Has(known))
			}
			require.Equal(t, test.computed, names.Has("other"))
		})
	}
}

func bravelion() *profilev1alpha1.ClusterProfile {
	return &profilev1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "bravelion", Labels: map[string]string{"cloud": "azure"}},
		Spec:       profilev1alpha1.ClusterProfileSpec{ClusterManager: profilev1alpha1.ClusterManager{Name: "fleet"}},
		Status: profilev1alpha1.ClusterProfileStatus{
			Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.33.1"},
			Properties: []profilev1alpha1.Property{
				{Name: "sku.node.k8s.io", Value: "g6.xlarge,Standard_NC48ads_H100,m3-ultramem-32"},
				// The example in the proposal lacks commas. They are added here.
				{Name: "sku.gpu.kubernetes-fleet.io", Value: `{
					"H100": [{"Standard_NC48ads_H100_v4": 10}, {"Standard_NC96ads_H100_v4": 2}],
					"A100": [{"Standard_NC48ads_A100_v4": 50}, {"Standard_NC96ads_A100_v4": 20}]
				}`},
			},
		},
	}
}
