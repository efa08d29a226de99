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
func TestScoresReceiver(t *testing.T)                  { selectors(t, "receiver") }
func TestExponentsAreCut(t *testing.T)                 { selectors(t, "exponents") }

// TestNow has what an answer is, and whether it depends on the time.
func TestNow(t *testing.T) { selectors(t, "now") }

// selectors evaluates the expressions of a transcript. Lines before them say on what: "on" has
// changes of [cluster1], "score" those of a score that there is besides, "at" is the time.
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

// selected is what an expression says of an object, which must be the same for what the object is
// in JSON.
func selected(t *testing.T, expression string, object metav1.Object, on cluster.Hub) string {
	t.Helper()
	selector, err := environment.Compile(t.Context(), expressions(expression), nil)
	if err != nil {
		return "does not compile: " + toldOf(t, err)
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
		result := fmt.Sprint(verdict.Matches)
		if err != nil {
			require.False(t, verdict.Matches)
			result = toldOf(t, err)
		}
		if verdict.Timed {
			result += ", at this time"
		}
		results = append(results, result)
	}
	require.Equal(t, results[0], results[1])
	return results[0]
}

// toldOf is the reason, the place if there is one, and the first line of the message.
func toldOf(t *testing.T, err error) string {
	t.Helper()
	failure, ok := errors.AsType[*cel.Error](err)
	require.True(t, ok, "%v", err)
	message, _, _ := strings.Cut(failure.Message, "\n")
	if failure.Line == 0 {
		return fmt.Sprintf("%s: %s", failure.Reason, message)
	}
	return fmt.Sprintf("%s at %d:%d: %s", failure.Reason, failure.Line, failure.Column, message)
}
