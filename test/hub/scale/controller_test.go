// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
)

// meter counts what a controller does.
type meter struct {
	evaluations atomic.Int64
	// decisions are those that were made, or found to stand.
	decisions atomic.Int64

	mutex sync.Mutex
	// writes are the requests that are no reads, by method and resource.
	writes map[string]int
}

// ObserveCompilation implements [cel.Observer].
func (*meter) ObserveCompilation(string, bool, error) {}

// ObserveEvaluation implements [cel.Observer].
func (m *meter) ObserveEvaluation(string, uint64, error) { m.evaluations.Add(1) }

// ObserveSchedule is not of interest.
func (*meter) ObserveSchedule() func(*placement.Result, error) {
	return func(*placement.Result, error) {}
}

// ObservePlugin implements [placement.Observer]. The first filter runs once each time a
// Placement is decided.
func (m *meter) ObservePlugin(_, name string) func() {
	if name != placement.Predicate {
		return func() {}
	}
	return func() { m.decisions.Add(1) }
}

// ObserveTurn implements [controller.Observer].
func (m *meter) ObserveTurn(turn string, _ bool) {
	if turn == controller.TurnUnchanged {
		m.decisions.Add(1)
	}
}

// ObserveWriting is not of interest.
func (*meter) ObserveWriting() func(error) { return func(error) {} }

// roundTripper counts the requests of a client.
type roundTripper struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		path := strings.Split(request.URL.Path, "/")
		resource := path[len(path)-1]
		for i, part := range path {
			if part == "namespaces" && i+2 < len(path) {
				resource = path[i+2]
			}
		}
		if path[len(path)-1] == "status" {
			resource += "/status"
		}
		r.mutex.Lock()
		r.writes[request.Method+" "+resource]++
		r.mutex.Unlock()
	}
	return r.next.RoundTrip(request)
}

// reset returns the counts of writes and evaluations, and starts anew.
func (m *meter) reset() (writes map[string]int, evaluations int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	writes, m.writes = m.writes, map[string]int{}
	return writes, int(m.evaluations.Swap(0))
}

// control runs the controller in this process until stop is called or the test ends.
func (h *hub) control(t testing.TB) (m *meter, stop func()) {
	t.Helper()
	m = &meter{writes: map[string]int{}}
	environment, err := cluster.NewEnvironment(cel.Config{Observer: m, CacheBytes: 1 << 30})
	require.NoError(t, err)
	config := h.ConfigOf(t, controlplane.AdminUser)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{m, next} })
	options := controller.Options{Scheduler: placement.Config{Environment: environment, Observer: m}, Observer: m, SkipNameValidation: true}
	stop = h.Manage(t, config, manager.Options{Cache: controller.Cache()}, func(mgr manager.Manager) error { return controller.Add(mgr, options) })
	return m, stop
}
