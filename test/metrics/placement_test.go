// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/metrics"
)

// exercisePlacement creates a time series for each combination of metric labels. A test in placement/metrics checks the values.
func exercisePlacement(t *testing.T, r *recorder) {
	t.Helper()
	measured, err := metrics.New(metrics.Options{Registerer: r.Registerer()})
	require.NoError(t, err)
	measured.ObserveSchedule()(&placement.Result{Decision: &placement.Decision{}}, nil)
	measured.ObserveSchedule()(&placement.Result{}, nil)
	measured.ObserveSchedule()(&placement.Result{}, errors.New("any"))
	measured.ObserveSchedule()(&placement.Result{OutOfRange: map[string]int{
		placement.ResourceAllocatableCPU: 1, placement.ResourceAllocatableMemory: 1, "AddOn/resource/score": 1,
	}}, nil)
	for _, turn := range []string{controller.TurnDone, controller.TurnContinued, controller.TurnFailed, controller.TurnUnchanged} {
		measured.ObserveTurn(turn, false)
		measured.ObserveTurn(turn, true)
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "placementdecisions"}, "a", errors.New("changed"))
	for _, err := range []error{nil, conflict, errors.New("any")} {
		measured.ObserveWriting()(err)
	}
	for kind, names := range map[string][]string{
		placement.KindFilter: {placement.Predicate, placement.TaintToleration},
		placement.KindPrioritizer: {
			placement.Steady, placement.Balance, placement.ResourceAllocatableCPU, placement.ResourceAllocatableMemory, "AddOn/resource/score",
		},
		placement.KindSpread: {placement.Spread},
	} {
		for _, name := range names {
			measured.ObservePlugin(kind, name)()
		}
	}
	measured.ObserveDuration("managedCluster", time.Millisecond)
	measured.ObserveEvaluation("managedCluster", 1, &cel.Error{Reason: cel.ReasonRuntime})
	measured.ObserveCompilation("managedCluster", false, nil)
}
