// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
)

// now is the time of all decisions.
var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// bench is a handler in front of a small hub.
type bench struct {
	handler http.Handler
	// placements are those of the hub, by namespace and name.
	placements map[types.NamespacedName]*clusterv1beta1.Placement
	snapshot   *placement.Snapshot
	scheduler  *placement.Scheduler
	// broken, if not nil, is what reading the hub fails with.
	broken error
	// decided counts the Placements that were.
	decided int
	// before, if not nil, is called before a Placement is decided.
	before func(context.Context)
	// scheduled, if not nil, is called instead where it matters of which namespace it is,
	// and limit says how long the evaluations may take.
	scheduled func(context.Context, string)
	limit     func(context.Context) (context.Context, context.CancelFunc)

	mutex sync.Mutex
	asked []authorizer.AttributesRecord
}

var sharedScheduler = sync.OnceValues(func() (*placement.Scheduler, error) { return placement.NewScheduler(placement.Config{}) })

// newBench has the smallHub.
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

// smallHub has the clusters a, b and c, of which b is tainted, in the set global that is bound to the namespace ns, and
// there the Placement p.
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

// Users are named by their tokens: reader may get in ns, author create there, nobody
// nothing.
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

// do makes a request as a user.
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

// call makes a request and demands what all answers have.
func (b *bench) call(t *testing.T, method, path, who, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	response := b.do(t, method, path, who, contentType, body)
	require.Equal(t, "application/json", response.Header().Get("Content-Type"))
	require.Equal(t, "no-store", response.Header().Get("Cache-Control"))
	return response
}

func reportIn(t *testing.T, response *httptest.ResponseRecorder, code int) *debug.Report {
	t.Helper()
	require.Equal(t, code, response.Code, response.Body)
	report := &debug.Report{}
	decoder := json.NewDecoder(response.Body)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(report))
	return report
}

// get returns the report on a stored Placement.
func (b *bench) get(t *testing.T, path string) *debug.Report {
	t.Helper()
	return reportIn(t, b.call(t, http.MethodGet, debug.Path+"/ns/"+path, "reader", "", ""), http.StatusOK)
}

// object is a Placement in YAML.
func object(namespace, name, spec string) string {
	return "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n" +
		"metadata: {namespace: '" + namespace + "', name: '" + name + "'}\nspec: {" + spec + "}\n"
}
