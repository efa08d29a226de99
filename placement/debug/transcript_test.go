// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
	"github.com/celset/celset/placement/report"
)

// The files in testdata have requests and their answers. "go test ./placement/debug -rewrite" updates the answers. A request
// has a method, a path, a user, a content type and a body. show=(...) selects parts of the report. The hub is smallHub with the
// given changes.

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

// reported returns the selected parts of the report in a response.
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

// inScheme matches the name of a runtime.Scheme in an error. The name contains a line number of a library.
var inScheme = regexp.MustCompile(` in scheme ".*"`)

// refused returns the message of a refusal as a user sees it.
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

// change adds or replaces objects of the hub.
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

// scores has all AddOnPlacementScores of a hub.
type scores []*clusterv1alpha1.AddOnPlacementScore

func (s scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	for _, score := range s {
		if score.Namespace == namespace && score.Name == name {
			return score, nil
		}
	}
	return nil, nil
}

// now is the time of all decisions.
var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// bench is a handler for a small fake hub.
type bench struct {
	handler http.Handler
	// placements has the Placements of the hub by namespace and name.
	placements map[types.NamespacedName]*clusterv1beta1.Placement
	snapshot   *placement.Snapshot
	scheduler  *placement.Scheduler
	// broken is the error that reading the hub returns. It may be nil.
	broken error
	// decided is the number of decisions so far.
	decided int
	// before is called before a Placement is decided. It may be nil.
	before func(context.Context)
	// scheduled is called with the namespace of each decided Placement. It may be nil. limit sets the time limit of the
	// evaluations.
	scheduled func(context.Context, string)
	limit     func(context.Context) (context.Context, context.CancelFunc)

	mutex sync.Mutex
	asked []authorizer.AttributesRecord
}

var sharedScheduler = sync.OnceValues(func() (*placement.Scheduler, error) { return placement.NewScheduler(placement.Config{}) })

// newBench returns a bench with smallHub.
func newBench(t *testing.T, change ...func(*debug.Options)) *bench {
	t.Helper()
	scheduler, err := sharedScheduler()
	require.NoError(t, err)
	b := &bench{scheduler: scheduler, placements: map[types.NamespacedName]*clusterv1beta1.Placement{}}
	options := debug.Options{Placements: b, Authenticator: authenticator.RequestFunc(b.authenticate), Authorizer: b}
	for _, one := range change {
		one(&options)
	}
	b.handler, err = debug.NewHandler(options)
	require.NoError(t, err)
	b.snapshot = &placement.Snapshot{}
	b.change(t, smallHub)
	return b
}

// smallHub has the clusters a, b and c in the set "global", which is bound to the namespace ns. Cluster b has a taint. The
// namespace has the Placement p.
const smallHub = `
sets: [{metadata: {name: global}, spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}}]
bindings: [{metadata: {namespace: ns, name: global}}]
clusters: [{metadata: {name: a}}, {metadata: {name: b}, spec: {taints: [{key: down, effect: NoSelect, timeAdded: null}]}}, {metadata: {name: c}}]
placements: [{metadata: {namespace: ns, name: p, generation: 7, managedFields: [{manager: somebody}]}, spec: {numberOfClusters: 1}}]
`

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (b *bench) Placement(_ context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	if b.broken != nil {
		return nil, b.broken
	}
	object := b.placements[key]
	if object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "placements"}, key.Name)
	}
	return object, nil
}

func (b *bench) Schedule(ctx context.Context, object *clusterv1beta1.Placement, at time.Time) (*placement.Result, error) {
	b.mutex.Lock()
	b.decided++
	b.mutex.Unlock()
	if b.before != nil {
		b.before(ctx)
	}
	if b.scheduled != nil {
		b.scheduled(ctx, object.Namespace)
	}
	if b.broken != nil {
		return nil, b.broken
	}
	if b.limit != nil {
		limited, cancel := b.limit(ctx)
		defer cancel()
		ctx = limited
	}
	if at.IsZero() {
		at = now
	}
	return b.scheduler.Schedule(ctx, object, b.snapshot, at)
}

// authenticate uses the token as the name of the user. reader may get Placements in ns, author may create Placements there, and
// root may do both in all namespaces. Other users have no rights.
func (b *bench) authenticate(request *http.Request) (*authenticator.Response, bool, error) {
	switch token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "); token {
	case "":
		return nil, false, nil
	case "forged":
		return nil, false, errors.New("invalid bearer token")
	case "unanswered":
		return nil, false, apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", errors.New("not you"))
	default:
		return &authenticator.Response{User: &user.DefaultInfo{Name: token}}, true, nil
	}
}

func (b *bench) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.asked = append(b.asked, a.(authorizer.AttributesRecord))
	switch who := a.GetUser().GetName(); {
	case who == "broken":
		return authorizer.DecisionNoOpinion, "", apierrors.NewNotFound(schema.GroupResource{Resource: "subjectaccessreviews"}, "")
	case who == "root", who == "reader" && a.GetVerb() == "get" && a.GetNamespace() == "ns",
		who == "author" && a.GetVerb() == "create" && a.GetNamespace() == "ns":
		return authorizer.DecisionAllow, "", nil
	case who == "stranger":
		return authorizer.DecisionDeny, "go away", nil
	default:
		return authorizer.DecisionNoOpinion, "", nil
	}
}

// do sends a request as the user who.
func (b *bench) do(t *testing.T, method, path, who, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if who != "" {
		request.Header.Set("Authorization", "Bearer "+who)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response := httptest.NewRecorder()
	b.handler.ServeHTTP(response, request)
	return response
}

// call sends a request and checks the headers that all answers must have.
func (b *bench) call(t *testing.T, method, path, who, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	response := b.do(t, method, path, who, contentType, body)
	require.Equal(t, "application/json", response.Header().Get("Content-Type"))
	require.Equal(t, "no-store", response.Header().Get("Cache-Control"))
	return response
}

func reportIn(t *testing.T, response *httptest.ResponseRecorder, code int) *report.Report {
	t.Helper()
	require.Equal(t, code, response.Code, response.Body)
	report := &report.Report{}
	decoder := json.NewDecoder(response.Body)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(report))
	return report
}

// get returns the report about a Placement of the hub.
func (b *bench) get(t *testing.T, path string) *report.Report {
	t.Helper()
	return reportIn(t, b.call(t, http.MethodGet, debug.Path+"/ns/"+path, "reader", "", ""), http.StatusOK)
}

// object returns a Placement in YAML.
func object(namespace, name, spec string) string {
	return "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n" +
		"metadata: {namespace: '" + namespace + "', name: '" + name + "'}\nspec: {" + spec + "}\n"
}
