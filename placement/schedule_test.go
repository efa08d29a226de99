// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

func TestMessagesFit(t *testing.T) {
	var texts []string
	for i := range placement.MaxExpressions {
		texts = append(texts, strings.Repeat(fmt.Sprintf("größe%d + ", i), 50)+"1")
	}
	result := schedule(t, placed(t, withExpressions(texts...)), newHub(several("a")...))
	message := meta.FindStatusCondition(result.Conditions, "PlacementMisconfigured").Message
	require.LessOrEqual(t, len(message), 32768)
	require.Greater(t, len(message), 32000)
	require.Regexp(t, "…$", message)
}

func TestSnapshotThatCanNotBeRead(t *testing.T) {
	for name, spec := range map[string]string{
		"in an expression": withExpressions(`managedCluster.scores("x").size() == 0 || true`),
		"as a prioritizer": exactly() + addOn("x", "y", 1),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(several("a")...)
			h.broken = errors.New("the cache is broken")
			result, err := newScheduler(t).Schedule(t.Context(), placed(t, spec), h.snapshot(), now)
			require.EqualError(t, err, "get AddOnPlacementScore a/x: the cache is broken")
			require.ErrorIs(t, err, h.broken)
			require.Nil(t, result.Decision)
			requireSatisfied(t, result, metav1.ConditionFalse, wellknown.ReasonNotScheduled, "the cache is broken; no cluster is selected")
		})
	}
}

func TestInterruption(t *testing.T) {
	s, h, object := newScheduler(t), newHub(several("a")...), placed(t, withExpressions(`true`))
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	result, err := s.Schedule(ctx, object, h.snapshot(), now)
	require.ErrorIs(t, err, cause)
	require.Nil(t, result.Decision)
	require.Nil(t, result.Overrun)
	require.Equal(t, []string{"a"}, selected(t, decide(t, s, object, h)), "an interrupted evaluation is not remembered")
}

func TestMissingArguments(t *testing.T) {
	s, h, object := newScheduler(t), newHub(), placed(t, ``)
	for _, missing := range []struct {
		object   *clusterv1beta1.Placement
		snapshot *placement.Snapshot
		at       time.Time
	}{{nil, h.snapshot(), now}, {object, nil, now}, {object, h.snapshot(), time.Time{}}} {
		result, err := s.Schedule(t.Context(), missing.object, missing.snapshot, missing.at)
		require.EqualError(t, err, "schedule: the placement, the snapshot and the time must be set")
		require.Nil(t, result.Decision)
		require.Empty(t, result.Conditions)
	}
	require.Len(t, uninterrupted(s.Validate(t.Context(), nil)), 1)
	result, err := s.Schedule(t.Context(), object, &placement.Snapshot{}, now)
	require.NoError(t, err)
	require.Empty(t, selected(t, result), "an empty snapshot is one")
	require.Empty(t, (&placement.Result{}).ScoreSummary())
}

// TestConcurrentUse decides the same Placement in several goroutines. Callers should not do that, but it must be safe.
func TestConcurrentUse(t *testing.T) {
	s, h := newScheduler(t), newHub(several("a", "b", "c")...)
	var wait sync.WaitGroup
	for i := range 8 {
		object := placed(t, `predicates: [{requiredClusterSelector: {labelSelector: {}}}]`)
		object.UID, object.Name = types.UID(fmt.Sprint(i%3)), fmt.Sprint("p", i%3)
		object.Generation = int64(1 + i%2)
		wait.Go(func() {
			for j := range 20 {
				result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
				if err != nil || result.Decision.Clusters != 3 {
					t.Error(err, described(result))
				}
				h.decisions.Set(result.Decision.Objects(object)[0])
				if j%10 == 9 {
					s.Forget(object.UID)
				}
			}
		})
	}
	wait.Wait()
}

func TestReads(t *testing.T) {
	h := newHub(several("a")...)
	reads := func(spec string) (names string) {
		of := schedule(t, placed(t, spec), h).Reads
		for _, name := range []string{"x", "y", "z"} {
			if of.Has(name) {
				names += name
			}
		}
		return names
	}
	require.Equal(t, "xyz", reads(withExpressions(`managedCluster.scores("x" + managedCluster.metadata.name).size() > 0`)), "it is computed, and may be any")
	both := withExpressions(`managedCluster.scores("x").size() > 0`) + exactly() + addOn("z", "s", 1)
	require.Equal(t, "xyz", reads(both), "the condition names x as missing, and another score may have nearly that name")
	h.score("a", "x", map[string]int32{"s": 1})
	h.score("a", "z", map[string]int32{"s": 1})
	require.Equal(t, "xz", reads(both))
	require.Empty(t, reads(``))
}

// plugins is an Observer that records which plugins run.
type plugins struct{ log []string }

func (p *plugins) ObservePlugin(kind, name string) (end func()) {
	p.log = append(p.log, kind+" "+name)
	return func() { p.log = append(p.log, "end") }
}

func (p *plugins) ObserveSchedule() (end func(*placement.Result, error)) {
	p.log = append(p.log, "schedule")
	return func(result *placement.Result, err error) {
		p.log = append(p.log, fmt.Sprintf("decided %t, failed %t", result.Decision != nil, err != nil))
	}
}

func TestObserver(t *testing.T) {
	observer := &plugins{}
	s, err := placement.NewScheduler(placement.Config{Environment: environment, Observer: observer})
	require.NoError(t, err)
	h, object := newHub(several("a", "b")...), placed(t, spreadOver("numberOfClusters: 1\n"+exactly("Steady 1")+addOn("r", "s", 1), hard))
	_, err = s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, []string{
		"schedule", "filter Predicate", "end", "filter TaintToleration", "end",
		"prioritizer Steady", "end", "prioritizer AddOn/r/s", "end", "spread Spread", "end", "decided true, failed false",
	}, observer.log)
	object.Generation, h.broken = 2, errors.New("gone")
	_, err = s.Schedule(t.Context(), object, h.snapshot(), now)
	require.Error(t, err)
	require.Equal(t, "decided false, failed true", observer.log[len(observer.log)-1])
}

func TestResponsible(t *testing.T) {
	const disable, take = clusterv1beta1.PlacementDisableAnnotation, wellknown.AnnotationPlacement
	deleting := &metav1.Time{Time: now}
	for _, test := range []struct {
		annotations   map[string]string
		deleting      *metav1.Time
		shared, alone bool
	}{
		{nil, nil, false, true},
		{map[string]string{disable: "true"}, nil, false, false},
		{map[string]string{disable: "false"}, nil, false, true},
		{map[string]string{take: "true"}, nil, true, true},
		{map[string]string{take: "true", disable: "true"}, nil, true, true},
		{map[string]string{take: "yes", disable: "true"}, nil, false, false},
		{map[string]string{take: "true"}, deleting, false, false},
	} {
		object := placed(t, ``)
		object.Annotations, object.DeletionTimestamp = test.annotations, test.deleting
		require.Equal(t, test.shared, placement.Responsible(object, false), test)
		require.Equal(t, test.alone, placement.Responsible(object, true), test)
	}
	require.False(t, placement.Responsible(nil, true))
}

// TestWhatOnlyTheHubTells adds a mistake that is found only while writing. KeepFormer drops the decision and Misconfigured
// keeps it. In both cases each type of condition must occur once.
func TestWhatOnlyTheHubTells(t *testing.T) {
	h := newHub(several("a", "b")...)
	h.decided("ns", "p", "b")
	object, taken := placed(t, "{}"), &placement.Misconfiguration{Plugin: placement.Selection, Path: field.NewPath("metadata", "name"), Err: errors.New("it is taken")}
	former := clusterv1beta1.PlacementStatus{DecisionGroups: []clusterv1beta1.DecisionGroupStatus{{ClustersCount: 1}}}
	for _, stands := range []bool{true, false} {
		result := schedule(t, object, h)
		if stands {
			result.KeepFormer(object, taken)
		} else {
			result.Misconfigured(object, taken)
		}
		require.Equal(t, stands, result.Decision == nil)
		require.Len(t, result.Misconfigurations, 1)
		require.Len(t, result.Conditions, 3)
		status := result.ApplyTo(former)
		require.Equal(t, "Selection:metadata.name: it is taken", meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured).Message)
		require.Equal(t, stands, meta.IsStatusConditionFalse(status.Conditions, clusterv1beta1.PlacementConditionSatisfied))
		require.Equal(t, map[bool]int32{true: 1, false: 2}[stands], status.NumberOfSelectedClusters)
		require.Equal(t, map[bool]int32{true: 1, false: 2}[stands], status.DecisionGroups[0].ClustersCount)
	}
}

// TestStandSaysNothingOfWhatIsSelected checks the message of a result that keeps the former decision. It must not say that
// clusters with failures are not selected, because the former decision may select them.
func TestStandSaysNothingOfWhatIsSelected(t *testing.T) {
	h := newHub(several("a", "b")...)
	h.decided("ns", "p", "b")
	object := placed(t, `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name == "a" || managedCluster.metadata.labels.x == "y"']}}}]}`)
	result := schedule(t, object, h)
	failed := func() string {
		return meta.FindStatusCondition(result.Conditions, wellknown.ConditionEvaluationFailed).Message
	}
	require.Contains(t, failed(), "failed on 1 clusters, so these clusters are not selected:\nb ")
	result.KeepFormer(object, &placement.Misconfiguration{Plugin: placement.Selection, Path: field.NewPath("metadata", "name"), Err: errors.New("it is taken")})
	require.Contains(t, failed(), "failed on 1 clusters:\nb ")
}

// TestDoubts checks that expensive expressions and unknown fields are reported, and that an expression that does not compile is
// not.
func TestDoubts(t *testing.T) {
	s := newScheduler(t)
	const nested = "managedCluster.metadata.all(a, managedCluster.spec.all(b, managedCluster.status.all(c, managedCluster.metadata.labels.all(d, a == d))))"
	object := placed(t, withExpressions("true", nested))
	object.Spec.Predicates = append(placed(t, withExpressions("1 +")).Spec.Predicates, object.Spec.Predicates...)
	found := uninterrupted(s.Doubts(t.Context(), object))
	require.Len(t, found, 1)
	require.Equal(t, "spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]", found[0].Path.String())
	found = uninterrupted(s.Doubts(t.Context(), placed(t, withExpressions("managedCluster.metadata.namme == 'a'"))))
	require.Len(t, found, 1)
	require.ErrorContains(t, found[0], `celExpressions[0]: managedCluster.metadata.namme: no such field; did you mean "name"?`)
}

// TestPartsAreBounded checks the limits for the numbers of parts. An object may have hundreds of thousands of empty parts.
func TestPartsAreBounded(t *testing.T) {
	values := func(n int) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: make([]string, n)}}}
	}
	strategy := func(groups ...clusterv1beta1.DecisionGroup) clusterv1beta1.DecisionStrategy {
		return clusterv1beta1.DecisionStrategy{GroupStrategy: clusterv1beta1.GroupStrategy{DecisionGroups: groups}}
	}
	for message, spec := range map[string]clusterv1beta1.PlacementSpec{
		"": {Predicates: make([]clusterv1beta1.ClusterPredicate, placement.MaxParts)},
		"there are 129 predicates, at most 128 are allowed":      {Predicates: make([]clusterv1beta1.ClusterPredicate, 129)},
		"there are 129 prioritizers, at most 128 are allowed":    {PrioritizerPolicy: clusterv1beta1.PrioritizerPolicy{Configurations: make([]clusterv1beta1.PrioritizerConfig, 129)}},
		"there are 129 decision groups, at most 128 are allowed": {DecisionStrategy: strategy(make([]clusterv1beta1.DecisionGroup, 129)...)},
		"there are 4097 labels, requirements, values, tolerations and sets together, but at most 4096 are allowed": {
			Predicates:       []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: values(2000)}}},
			DecisionStrategy: strategy(clusterv1beta1.DecisionGroup{GroupName: "g", ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: values(2085)}}),
			Tolerations:      make([]clusterv1beta1.Toleration, 10),
		},
	} {
		wrong := uninterrupted(newScheduler(t).Validate(t.Context(), &clusterv1beta1.Placement{Spec: spec}))
		if message == "" {
			require.Empty(t, wrong)
			continue
		}
		require.Len(t, wrong, 1)
		require.ErrorContains(t, wrong[0], message)
	}
}
