// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/malformed"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestMalformedOnHub starts with Placements that select all clusters. It replaces their specs by malformed specs that the API
// server accepts. Then it adds malformed clusters, scores and ManagedClusterSets. The decisions must stay correct.
func TestMalformedOnHub(t *testing.T) {
	h := newHub(t, controlplane.Options{})
	const clusters = 20
	h.join(t, 0, clusters)
	h.score(t, clusters)
	placements, all := make([]*clusterv1beta1.Placement, cases.Of(30, 300)), map[string]sets.Set[string]{}
	for i := range placements {
		placements[i] = h.place(t, fmt.Sprintf("p%d", i), clusterv1beta1.PlacementSpec{})
		all[placements[i].Name] = sets.New(nameOf(0))
	}
	o := h.observe(t)
	m, stop := h.control(t)
	h.requireSettled(t)
	o.catchUp(t)
	before := o.versions()

	rejected := 0
	for i, object := range placements {
		rejected += h.spoil(t, object, uint64(i))
	}
	listed := h.requireConditions(t, m)
	misconfigured := requireKept(t, listed, before)
	require.Greater(t, misconfigured, len(placements)/10)
	t.Logf("%d of %d Placements are misconfigured; %d were rejected", misconfigured, len(placements), rejected)

	good := map[string]sets.Set[string]{}
	for _, object := range listed.placements {
		// Only these Placements keep their clusters. A Placement with a limited number of clusters may select better clusters
		// when more exist.
		if object.Spec.NumberOfClusters == nil && len(object.Spec.SpreadPolicy.SpreadConstraints) == 0 && meta.IsStatusConditionFalse(object.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured) &&
			object.Status.NumberOfSelectedClusters == clusters {
			good[object.Name] = all[object.Name]
		}
	}
	require.NotEmpty(t, good)
	// Wait until the observer has seen all events of the earlier state.
	o.catchUp(t)
	o.expect(good)
	n := cases.Of(30, 300)
	h.spoilRest(t, uint64(n))
	h.requireConditions(t, m)
	o.requireStayed(t, all)
	// From now on, Placements can also select clusters of malformed ManagedClusterSets.
	each(t, n, func(ctx context.Context, i int) error { return h.bind(ctx, fmt.Sprintf("malformed-%d", i)) })
	h.requireConditions(t, m)
	o.requireStayed(t, all)
	stop()
}

// requireConditions waits until every Placement has conditions for its current spec and no decision is pending. It does not
// compare scores of the prioritizer Balance, because they depend on decisions of other Placements, which don't trigger a new
// decision.
func (h *hub) requireConditions(t testing.TB, m *meter) listing {
	t.Helper()
	for deadline := time.Now().Add(env.Patience); time.Now().Before(deadline); {
		since, listed := m.decisions.Load(), h.list(t)
		time.Sleep(time.Second)
		waiting := slices.ContainsFunc(listed.placements, func(object *clusterv1beta1.Placement) bool {
			return len(object.Status.Conditions) == 0 || slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool {
				return c.ObservedGeneration != object.Generation
			})
		})
		if !waiting && m.decisions.Load() == since {
			return listed
		}
	}
	t.Fatal("the controller does not come to rest")
	return listing{}
}

// spoil replaces the spec of a Placement by a malformed spec. It tries specs until the API server accepts one, and returns the
// number of rejected specs.
func (h *hub) spoil(t testing.TB, object *clusterv1beta1.Placement, seed uint64) (rejected int) {
	t.Helper()
	for random := rand.New(rand.NewPCG(seed, 1)); ; rejected++ {
		drawn := malformed.Placement(random)
		if random.IntN(2) == 0 {
			drawn.Spec.ClusterSets = nil
		}
		err := env.Change(t.Context(), h, object.DeepCopy(), func(p *clusterv1beta1.Placement) {
			p.Spec = drawn.Spec
			for key, value := range drawn.Annotations {
				p.Annotations[key] = value
			}
		})
		if err == nil {
			return rejected
		}
		requireRejected(t, err)
	}
}

// requireRejected requires that err is a rejection by the API server, or the failure to encode the object as JSON.
func requireRejected(t testing.TB, err error) {
	t.Helper()
	var unwritable *json.MarshalerError
	require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || errors.As(err, &unwritable), "%v", err)
}

// spoilRest creates n malformed clusters, scores and ManagedClusterSets.
func (h *hub) spoilRest(t testing.TB, n uint64) {
	t.Helper()
	taken := 0
	for seed := range n {
		random := rand.New(rand.NewPCG(seed, 2))
		cluster, score, set := malformed.Cluster(random), malformed.Score(random), malformed.Set(random)
		for _, each := range []struct {
			object client.Object
			status any
		}{{cluster, &cluster.Status}, {score, &score.Status}, {set, nil}} {
			each.object.SetName(fmt.Sprintf("malformed-%d", seed))
			each.object.SetUID("")
			each.object.SetResourceVersion("")
			if each.object == score {
				score.SetNamespace(nameOf(int(seed % 20)))
				// The Placements of the test read the score with this name.
				score.SetName("room")
				require.NoError(t, client.IgnoreNotFound(h.Delete(t.Context(), score.DeepCopy())))
			}
			ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
			err := h.put(ctx, each.object, each.status)
			cancel()
			if err == nil {
				taken++
				continue
			}
			requireRejected(t, err)
		}
	}
	require.Greater(t, taken, int(n)/2)
	t.Logf("%d malformed clusters, scores and sets were taken", taken)
}

// requireKept requires that every Placement has its conditions, and that misconfigured Placements keep the decisions in before.
// It returns the number of misconfigured Placements.
func requireKept(t testing.TB, listed listing, before map[string]string) (misconfigured int) {
	t.Helper()
	now := map[string]string{}
	for _, decision := range listed.decisions {
		now[decision.Name] = decision.ResourceVersion
	}
	for _, object := range listed.placements {
		require.Len(t, object.Status.Conditions, 3, object.Name)
		for _, condition := range object.Status.Conditions {
			require.Equal(t, object.Generation, condition.ObservedGeneration, object.Name)
			require.NotEmpty(t, condition.Message, object.Name)
		}
		satisfied := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		if meta.IsStatusConditionTrue(object.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured) && satisfied.Reason == wellknown.ReasonNotScheduled {
			misconfigured++
			require.Equal(t, metav1.ConditionFalse, satisfied.Status)
			name := object.Name + "-decision-1"
			require.Equal(t, before[name], now[name], "%s: %s", object.Name, satisfied.Message)
		}
	}
	return misconfigured
}
