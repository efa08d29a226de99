// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	pollPeriod = 20 * time.Millisecond
	patience   = time.Minute
)

// outcome is what the API server says of a Placement.
type outcome struct {
	placement *clusterv1beta1.Placement
	objects   []clusterv1beta1.PlacementDecision
	// names are the clusters in the objects, sorted.
	names []string
}

// check is what must be true of an outcome; the error says what is not.
type check func(*outcome) error

// await waits until a Placement was decided, as it is now, and the checks pass.
func (d *demo) await(ctx context.Context, key client.ObjectKey, checks ...check) (*outcome, error) {
	var result *outcome
	var wrong error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		if result, err = d.outcome(ctx, key); err != nil {
			return false, err
		}
		wrong = decided(result)
		for _, check := range checks {
			if wrong == nil {
				wrong = check(result)
			}
		}
		return wrong == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("await Placement %s: %w", key, errors.Join(wrong, err))
	}
	return result, nil
}

// outcome reads a Placement and its PlacementDecisions.
func (d *demo) outcome(ctx context.Context, key client.ObjectKey) (*outcome, error) {
	result := &outcome{placement: &clusterv1beta1.Placement{}}
	if err := d.client.Get(ctx, key, result.placement); err != nil {
		return nil, err
	}
	var list clusterv1beta1.PlacementDecisionList
	err := d.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: key.Name})
	if err != nil {
		return nil, err
	}
	result.objects = list.Items
	for _, object := range list.Items {
		for _, decision := range object.Status.Decisions {
			result.names = append(result.names, decision.ClusterName)
		}
	}
	slices.Sort(result.names)
	return result, nil
}

// decided checks that the status is about the spec as it is, and about the decisions.
func decided(o *outcome) error {
	satisfied := meta.FindStatusCondition(o.placement.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
	if satisfied == nil || satisfied.ObservedGeneration != o.placement.Generation {
		return errors.New("nobody has decided it")
	}
	if said := int(o.placement.Status.NumberOfSelectedClusters); said != len(o.names) {
		return fmt.Errorf("the status says that %d clusters are selected, the PlacementDecisions have %d", said, len(o.names))
	}
	return nil
}

// selects checks that exactly these clusters are selected.
func selects(members []member) check {
	want := namesOf(members)
	slices.Sort(want)
	return func(o *outcome) error {
		if !slices.Equal(want, o.names) {
			return fmt.Errorf("these clusters should be selected (-), but these are (+):\n%s", cmp.Diff(want, o.names))
		}
		return nil
	}
}

// says checks a condition: its status, and what its message contains.
func says(kind, status, text string) check {
	return func(o *outcome) error {
		c := meta.FindStatusCondition(o.placement.Status.Conditions, kind)
		if c == nil || string(c.Status) != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition %s should be %s and say %q, but is %+v", kind, status, text, c)
		}
		return nil
	}
}

// message is that of a condition.
func (o *outcome) message(kind string) string {
	if c := meta.FindStatusCondition(o.placement.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// of are the selected ones of the members, in their order.
func (o *outcome) of(members []member) []member {
	return choose(members, func(m member) bool { return slices.Contains(o.names, m.Name) })
}

// score is what the decision says of a cluster.
func (o *outcome) score(m member) string {
	for _, object := range o.objects {
		for _, decision := range object.Status.Decisions {
			if decision.ClusterName == m.Name {
				return fmt.Sprint(decision.Score)
			}
		}
	}
	return ""
}

func namesOf(members []member) []string {
	var result []string
	for _, m := range members {
		result = append(result, m.Name)
	}
	return result
}
