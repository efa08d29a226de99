// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

// Amounts that would take hours to be decoded, and such that can't be, are stored by a
// real API server, and keep nobody from being decided.
func TestHarmfulAmountsOnAHub(t *testing.T) {
	f := newFleet(t)
	for i, amount := range []string{"11111111111111111111e2000000", "1e400.5", "1e16000000"} {
		object := f.join(t, fmt.Sprintf("liar%d", i), nil)
		status := fmt.Sprintf(`{"status":{"conditions":[],"version":{},"capacity":{"cpu":%q},"allocatable":{"cpu":%q}}}`, amount, amount)
		must(t, f.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(status))))
	}
	object := f.place(t, "p")
	f.requireSelected(t, object, "liar0", "liar1", "liar2")
	change(t, f, object, func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates = predicates(`managedCluster.status.allocatable.cpu == "-1"`)
	})
	f.requireSelected(t, object, "liar0", "liar1", "liar2")
}

// Expensive expressions end on a real hub, in one way or another, and others are decided.
func TestExpensivePlacementsOnAHub(t *testing.T) {
	f := newFleet(t)
	object := f.join(t, "a", nil)
	before := object.DeepCopy()
	object.Annotations = map[string]string{"x": strings.Repeat("a,", 30_000)}
	must(t, f.Patch(t.Context(), object, client.MergeFrom(before)))
	const list = `managedCluster.metadata.annotations["x"].split(",")`
	var hostile []*clusterv1beta1.Placement
	for i := range 2 * DefaultWorkers {
		hostile = append(hostile, f.place(t, fmt.Sprintf("hostile%d", i), fmt.Sprintf(`%s.all(a, %s.all(b, a != "%d"))`, list, list, i)))
	}
	other := newFleet(t)
	other.join(t, "b", nil)
	other.requireSelected(t, other.place(t, "p"), "b")
	for _, object := range hostile {
		f.requireCondition(t, object, placement.ConditionEvaluationFailed, "True EvaluationFailed")
	}
}
