// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// hub is an API server with the kinds of Open Cluster Management, on which the controllers run.
type hub struct {
	*env.Hub
	observed *observed
}

var shared *hub

func TestMain(m *testing.M) { env.Main(m, startHub) }

// startHub starts a hub, and runs the controllers of "celset-placement --manage-bindings" with the program's rights.
func startHub(t testing.TB) {
	shared = &hub{
		Hub: env.StartHub(t, controlplane.Options{
			Controllers: []string{"garbage-collector-controller"}, Users: []controlplane.User{env.Placement},
		}),
		observed: &observed{runs: map[string]int{}},
	}
	shared.ApplyManifests(t, "placement/rbac.yaml")
	shared.Manage(t, shared.ConfigOf(t, env.Placement.Name), manager.Options{Cache: binding.Cache(controller.Cache())},
		binding.Add, func(mgr manager.Manager) error {
			return controller.Add(mgr, controller.Options{Scheduler: placement.Config{Observer: shared.observed}})
		})
}

// observed counts runs of plugins by kind and name, and the clusters that CEL predicates have evaluated.
type observed struct {
	mutex     sync.Mutex
	runs      map[string]int
	evaluated int
}

// ObservePlugin implements [placement.Observer].
func (o *observed) ObservePlugin(kind, name string) (end func()) {
	return func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.runs[kind+" "+name]++
	}
}

// ObserveSchedule implements [placement.Observer].
func (o *observed) ObserveSchedule() (end func(*placement.Result, error)) {
	return func(result *placement.Result, _ error) {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.evaluated += result.Evaluated
	}
}

func (o *observed) evaluations() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.evaluated
}

func (o *observed) count(kind, name string) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.runs[kind+" "+name]
}
