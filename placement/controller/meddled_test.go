// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
)

// meddling is what others do to a PlacementDecision that is none of theirs.
func meddling(another string) map[string]func(*testing.T, fleet, *clusterv1beta1.PlacementDecision) error {
	patch := func(mutate func(*clusterv1beta1.PlacementDecision)) func(*testing.T, fleet, *clusterv1beta1.PlacementDecision) error {
		return func(t *testing.T, f fleet, d *clusterv1beta1.PlacementDecision) error {
			from := d.DeepCopy()
			mutate(d)
			return f.Patch(t.Context(), d, client.MergeFrom(from))
		}
	}
	status := func(mutate func(*clusterv1beta1.PlacementDecisionStatus)) func(*testing.T, fleet, *clusterv1beta1.PlacementDecision) error {
		return func(t *testing.T, f fleet, d *clusterv1beta1.PlacementDecision) error {
			from := d.DeepCopy()
			mutate(&d.Status)
			return f.Status().Patch(t.Context(), d, client.MergeFrom(from))
		}
	}
	return map[string]func(*testing.T, fleet, *clusterv1beta1.PlacementDecision) error{
		"delete": func(t *testing.T, f fleet, d *clusterv1beta1.PlacementDecision) error {
			return f.Delete(t.Context(), d)
		},
		"no label":   patch(func(d *clusterv1beta1.PlacementDecision) { delete(d.Labels, clusterv1beta1.PlacementLabel) }),
		"no labels":  patch(func(d *clusterv1beta1.PlacementDecision) { d.Labels = nil }),
		"of another": patch(func(d *clusterv1beta1.PlacementDecision) { d.Labels[clusterv1beta1.PlacementLabel] = another }),
		"group":      patch(func(d *clusterv1beta1.PlacementDecision) { d.Labels[clusterv1beta1.DecisionGroupIndexLabel] = "7" }),
		"empty":      status(func(s *clusterv1beta1.PlacementDecisionStatus) { s.Decisions = []clusterv1beta1.ClusterDecision{} }),
		"stranger": status(func(s *clusterv1beta1.PlacementDecisionStatus) {
			s.Decisions = append(s.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "stranger"})
		}),
		"reason": status(func(s *clusterv1beta1.PlacementDecisionStatus) {
			for i := range s.Decisions {
				s.Decisions[i].Reason = "because I say so"
			}
		}),
	}
}

// Whatever others do to PlacementDecisions, and at whatever moment, these become what they were.
func TestMeddledDecisionsAreRestored(t *testing.T) {
	f := newFleet(t)
	random := rand.New(rand.NewPCG(cases.Seed(), 1))
	for i := range 3 {
		f.join(t, fmt.Sprint(i), nil)
	}
	names := make([]string, 6)
	placements, want := make([]*clusterv1beta1.Placement, len(names)), map[string]map[string]clusterv1beta1.PlacementDecision{}
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
		placements[i] = f.place(t, names[i])
	}
	for i, p := range placements {
		f.requireSelected(t, p, "0", "1", "2")
		want[names[i]] = f.decisions(t, p)
	}
	const rounds = 40
	met := map[string]int{}
	var trail []string
	defer func() {
		if t.Failed() {
			for _, l := range trail[max(0, len(trail)-40):] {
				t.Log(l)
			}
			var list clusterv1beta1.PlacementDecisionList
			_ = f.List(context.Background(), &list, client.InNamespace(f.name))
			for _, d := range list.Items {
				t.Log(d.Name, d.ResourceVersion, d.Labels, len(d.Status.Decisions), d.OwnerReferences)
			}
		}
	}()
	for round := 0; round < rounds || len(met) < len(meddling("")); round++ {
		for i, p := range placements {
			ways := meddling(names[(i+1)%len(names)])
			for _, name := range slices.Sorted(maps.Keys(ways)) {
				if random.IntN(len(ways)) > 0 {
					continue
				}
				for _, d := range f.decisions(t, p) {
					if err := ways[name](t, f, &d); err == nil {
						met[name]++
						trail = append(trail, fmt.Sprint(time.Now().Format("05.000 "), name, " ", d.Name, " ", d.ResourceVersion))
					} else if !apierrors.IsNotFound(err) {
						t.Fatal(name, ": ", err)
					}
				}
			}
		}
		if random.IntN(2) == 0 {
			continue
		}
		for i, p := range placements {
			eventually(t, settled(want[names[i]]), func() map[string]string { return settled(f.decisions(t, p)) })
		}
	}
	t.Log(met)
}

// settled is what PlacementDecisions say, but for scores, which depend on what there was before.
func settled(of map[string]clusterv1beta1.PlacementDecision) map[string]string {
	result := map[string]string{}
	for name, d := range of {
		result[name] = fmt.Sprint(d.Labels, d.OwnerReferences[0].UID)
		for _, one := range d.Status.Decisions {
			result[name] += fmt.Sprint(" ", one.ClusterName, ": ", one.Reason)
		}
	}
	return result
}
