// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// publisher publishes decisions of the Placement ns/p to a hub in memory. Each write calls the function after. If after returns
// an error, the write fails, too.
type publisher struct {
	*reconciler
	placement *clusterv1beta1.Placement
	events    *events.FakeRecorder
	after     func() error
	// result is the last published result.
	result *placement.Result
}

func newPublisher(t require.TestingT) *publisher {
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	p := &publisher{events: events.NewFakeRecorder(1000), after: func() error { return nil }}
	p.placement = &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Generation: 1, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"}}}
	written := func(err error) error {
		if err != nil {
			return err
		}
		return p.after()
	}
	memory := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p.placement).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return written(c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return written(c.Update(ctx, object, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return written(c.Delete(ctx, object, options...))
		},
	}).Build()
	p.reconciler = &reconciler{hub: hub{client: memory, reader: memory, profiles: "fleet"}, events: p.events, records: newRecords(Timeouts{})}
	return p
}

// publish publishes a decision with one group for each element of slices.
func (p *publisher) publish(ctx context.Context, slices [][]string) error {
	decision := &placement.Decision{}
	for i, names := range slices {
		group := placement.Group{Slices: []placement.Slice{{Name: fmt.Sprintf("p-decision-%d", i+1)}}}
		for _, name := range names {
			group.Slices[0].Decisions = append(group.Slices[0].Decisions, clusterv1beta1.ClusterDecision{ClusterName: name, Score: 7, Reason: "r"})
		}
		decision.Groups = append(decision.Groups, group)
	}
	p.result = &placement.Result{Decision: decision}
	return p.reconciler.publish(ctx, p.placement, p.result)
}

func (p *publisher) objects(t require.TestingT) []profilev1alpha1.PlacementDecision {
	var list profilev1alpha1.PlacementDecisionList
	require.NoError(t, p.client.List(context.Background(), &list, client.InNamespace("ns"), client.MatchingLabels{profilev1alpha1.DecisionKeyLabel: "p"}))
	return list.Items
}

func TestPublishedObjects(t *testing.T) {
	p := newPublisher(t)
	must(t, p.publish(t.Context(), [][]string{{"a"}, nil}))
	objects := p.objects(t)
	require.Len(t, objects, 2)
	first := objects[0]
	require.Equal(t, "celset-placement", first.SchedulerName)
	require.Equal(t, []profilev1alpha1.ClusterDecision{{ClusterProfileRef: profilev1alpha1.ClusterProfileReference{Namespace: "fleet", Name: "a"}, Reason: "r"}}, first.Decisions)
	require.True(t, metav1.IsControlledBy(&first, p.placement))
	require.Equal(t, "p", first.Labels[profilev1alpha1.DecisionKeyLabel])
	require.Empty(t, objects[1].Decisions)
	require.Len(t, ofPublished(t.Context(), &first), 1)

	t.Run("repaired", func(t *testing.T) {
		for name, spoil := range map[string]func(*profilev1alpha1.PlacementDecision){
			"scheduler": func(o *profilev1alpha1.PlacementDecision) { o.SchedulerName = "other" },
			"namespace": func(o *profilev1alpha1.PlacementDecision) { o.Decisions[0].ClusterProfileRef.Namespace = "other" },
			"reason":    func(o *profilev1alpha1.PlacementDecision) { o.Decisions[0].Reason = "other" },
			"index":     func(o *profilev1alpha1.PlacementDecision) { o.Labels[profilev1alpha1.DecisionIndexLabel] = "5" },
			"key":       func(o *profilev1alpha1.PlacementDecision) { o.Labels = nil },
		} {
			spoiled := p.objects(t)[0]
			spoil(&spoiled)
			must(t, p.client.Update(t.Context(), &spoiled))
			err := p.publish(t.Context(), [][]string{{"a"}, nil})
			if name == "key" {
				require.True(t, apierrors.IsConflict(err), "it is found with its label, the next time: %v", err)
				require.Contains(t, <-p.events.Events, "the controller lists the PlacementDecisions again")
				err = p.publish(t.Context(), [][]string{{"a"}, nil})
			}
			must(t, err)
			repaired := p.objects(t)[0]
			repaired.ResourceVersion = first.ResourceVersion
			require.Equal(t, first, repaired, name)
		}
	})
	t.Run("of others", func(t *testing.T) {
		foreign := &profilev1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-decision-3", Labels: map[string]string{profilev1alpha1.DecisionKeyLabel: "p"}}}
		must(t, p.client.Create(t.Context(), foreign))
		err := p.publish(t.Context(), [][]string{{"a"}, nil, {"b"}})
		require.ErrorContains(t, err, "PlacementDecision ns/p-decision-3 of multicluster.x-k8s.io does not belong to Placement p")
		require.Contains(t, <-p.events.Events, "does not belong to Placement p")
		must(t, p.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
		require.Empty(t, foreign.Decisions)
		require.Len(t, p.result.Conditions, 1, "what is written stands")
		require.Equal(t, clusterv1beta1.PlacementConditionMisconfigured, p.result.Conditions[0].Type)
		require.Equal(t, metav1.ConditionTrue, p.result.Conditions[0].Status)
		require.Contains(t, p.result.Conditions[0].Message, "Selection:metadata.name: PlacementDecision ns/p-decision-3 of multicluster.x-k8s.io does not belong to Placement p")
		require.NotNil(t, p.result.Decision)
	})
	t.Run("known to be published", func(t *testing.T) {
		p := newPublisher(t)
		published := func() bool {
			is, err := p.isPublished(t.Context(), p.placement)
			require.NoError(t, err)
			return is
		}
		publish := func() { must(t, p.publish(t.Context(), [][]string{{"a"}, {"b"}})) }
		require.False(t, published(), "nothing is known yet")
		publish()
		require.False(t, published(), "it was written, and not looked at since")
		publish()
		require.True(t, published())
		touched := p.objects(t)[1]
		touched.Annotations = map[string]string{"a": "b"}
		must(t, p.client.Update(t.Context(), &touched))
		require.False(t, published(), "somebody has touched it")
		publish()
		require.True(t, published())
		must(t, p.client.Delete(t.Context(), &touched))
		require.False(t, published(), "somebody has taken one away")
		publish()
		publish()
		require.True(t, published())
		p.records.forget(client.ObjectKeyFromObject(p.placement))
		require.False(t, published(), "nothing is known any more")
	})
	t.Run("nothing to say", func(t *testing.T) {
		p.after = func() error { return errors.New("nothing is to be written") }
		must(t, p.reconciler.publish(t.Context(), p.placement, nil))
		must(t, p.reconciler.publish(t.Context(), p.placement, &placement.Result{}))
		p.profiles = ""
		must(t, p.publish(t.Context(), [][]string{{"x"}}))
	})
	t.Run("a Placement that has changed", func(t *testing.T) {
		p := newPublisher(t)
		p.placement = p.placement.DeepCopy()
		p.placement.Generation = 2
		require.ErrorContains(t, p.publish(t.Context(), [][]string{{"a"}}), "the Placement has changed since it was decided")
		require.Empty(t, p.objects(t))
	})
	require.Empty(t, ofPublished(t.Context(), &profilev1alpha1.PlacementDecision{}))
}
