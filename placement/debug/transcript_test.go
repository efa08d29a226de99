// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
)

// The files in testdata have requests with their answers, which "go test ./placement/debug -rewrite" writes anew.
// A request has a method, a path, a user, a content type and a body; show=(...) are the parts of the report that
// are told. The hub is the smallHub with what is said of it.

func TestReports(t *testing.T)  { replay(t, "reports") }
func TestRefusals(t *testing.T) { replay(t, "refusals") }
func TestDefaults(t *testing.T) { replay(t, "defaults") }

func replay(t *testing.T, name string) {
	var b *bench
	datadriven.RunTest(t, filepath.Join("testdata", name), func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "hub" {
			b = newBench(t, func(o *debug.Options) { o.All = d.HasArg("all") })
			b.change(t, d.Input)
			return ""
		}
		word := func(i int) string {
			if i >= len(d.CmdArgs) || d.CmdArgs[i].Key == "-" || d.CmdArgs[i].Key == "show" {
				return ""
			}
			return d.CmdArgs[i].String()
		}
		decided := b.decided
		response := b.call(t, d.Cmd, debug.Path+word(0), word(1), word(2), d.Input)
		if response.Code == http.StatusOK {
			return reported(t, response, d)
		}
		require.Equal(t, decided, b.decided, "what is refused is not decided")
		return refused(t, response)
	})
}

// reported are the parts of a report that are to be shown.
func reported(t *testing.T, response *httptest.ResponseRecorder, d *datadriven.TestData) string {
	report := map[string]any{}
	require.NoError(t, json.Unmarshal(response.Body.Bytes(), &report))
	for _, arg := range d.CmdArgs {
		if arg.Key == "show" {
			parts := map[string]any{}
			for _, name := range arg.Vals {
				parts[name] = report[name]
			}
			report = parts
		}
	}
	text, err := yaml.Marshal(report)
	require.NoError(t, err)
	return string(text)
}

// inScheme is a line of a library.
var inScheme = regexp.MustCompile(` in scheme ".*"`)

// refused is what a user reads of a refusal.
func refused(t *testing.T, response *httptest.ResponseRecorder) string {
	status := requireStatus(t, response)
	require.EqualValues(t, response.Code, status.Code)
	text := fmt.Sprintf("%d %s: %s", status.Code, status.Reason, inScheme.ReplaceAllString(status.Message, ""))
	for _, name := range []string{"Allow", "WWW-Authenticate"} {
		if value := response.Header().Get(name); value != "" {
			text += fmt.Sprintf("\n%s: %s", name, value)
		}
	}
	return text
}

func requireStatus(t *testing.T, response *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	require.NoError(t, json.NewDecoder(response.Body).Decode(&status))
	require.Equal(t, metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, status.TypeMeta)
	require.Equal(t, metav1.StatusFailure, status.Status)
	return status
}

// change reads what else is on the hub, or is otherwise.
func (b *bench) change(t *testing.T, text string) {
	var said struct {
		Sets       []*clusterv1beta2.ManagedClusterSet
		Bindings   []*clusterv1beta2.ManagedClusterSetBinding
		Clusters   []*clusterv1.ManagedCluster
		Scores     []*clusterv1alpha1.AddOnPlacementScore
		Decisions  []*clusterv1beta1.PlacementDecision
		Placements []*clusterv1beta1.Placement
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &said))
	if said.Sets != nil {
		b.snapshot.ClusterSets = said.Sets
	}
	if said.Bindings != nil {
		b.snapshot.Bindings = said.Bindings
	}
	if said.Clusters != nil {
		b.snapshot.Clusters = said.Clusters
	}
	b.snapshot.Decisions = placement.NewDecisions(said.Decisions...)
	b.snapshot.Scores = scores(said.Scores)
	for _, object := range said.Placements {
		b.placements[keyOf(object.Namespace, object.Name)] = object
	}
}

// scores are those of a hub.
type scores []*clusterv1alpha1.AddOnPlacementScore

func (s scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	for _, score := range s {
		if score.Namespace == namespace && score.Name == name {
			return score, nil
		}
	}
	return nil, nil
}
