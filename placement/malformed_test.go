// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"

	"github.com/celset/celset/placement"
)

// anything draws what no API server lets through, and what it does.
type anything struct{ *rapid.T }

func (a anything) text(also ...string) string {
	return rapid.SampledFrom(append([]string{"", "a", "b", "x y", "é\xff", strings.Repeat("n", 300), "100%", "-1"}, also...)).Draw(a.T, "text")
}

func (a anything) number() int32 {
	return rapid.SampledFrom([]int32{0, 1, 2, -1, 10, 11, math.MaxInt32, math.MinInt32}).Draw(a.T, "number")
}

func list[E any](a anything, draw func() E) []E {
	var result []E
	for range rapid.IntRange(0, 2).Draw(a.T, "length") {
		result = append(result, draw())
	}
	return result
}

func maybe[E any](a anything, draw func() E) *E {
	if rapid.Bool().Draw(a.T, "nil") {
		return nil
	}
	value := draw()
	return &value
}

func (a anything) requirement() metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: a.text(), Operator: metav1.LabelSelectorOperator(a.text("In", "Exists", "Gt")), Values: list(a, func() string { return a.text() })}
}

func (a anything) labelSelector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: a.labels(), MatchExpressions: list(a, a.requirement)}
}

func (a anything) labels() map[string]string {
	result := map[string]string{}
	for range rapid.IntRange(0, 1).Draw(a.T, "labels") {
		result[a.text(clusterv1beta2.ClusterSetLabel)] = a.text()
	}
	return result
}

func (a anything) expression() string {
	return a.text("true", "false", "1", "managedCluster.x", `managedCluster.scores("a").exists(s, s.quantity > 1)`, `managedCluster.metadata.labels["a"].parseJSON()`, "[1][2] == 1", strings.Repeat("(", 1000))
}

func (a anything) placement() *clusterv1beta1.Placement {
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.text("ns"), Name: a.text("p"), UID: types.UID(a.text()), Generation: int64(a.number()),
		Annotations: map[string]string{placement.TieBreakAnnotation: a.text(placement.TieBreakRandom)},
	}}
	spec := &result.Spec
	spec.ClusterSets = list(a, func() string { return a.text() })
	spec.NumberOfClusters = maybe(a, a.number)
	spec.SortBy = clusterv1beta1.PlacementSortByType(a.text("Score"))
	spec.ScoreRateLimit = a.text("1s")
	spec.Predicates = list(a, func() clusterv1beta1.ClusterPredicate {
		return clusterv1beta1.ClusterPredicate{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: a.labelSelector(),
			ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: list(a, a.requirement)},
			CelSelector:   clusterv1beta1.ClusterCelSelector{CelExpressions: list(a, a.expression)},
		}}
	})
	spec.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeType(a.text("Exact", "Additive"))
	spec.PrioritizerPolicy.Configurations = list(a, func() clusterv1beta1.PrioritizerConfig {
		return clusterv1beta1.PrioritizerConfig{Weight: a.number(), ScoreCoordinate: maybe(a, func() clusterv1beta1.ScoreCoordinate {
			return clusterv1beta1.ScoreCoordinate{
				Type: a.text("BuiltIn", "AddOn"), BuiltIn: a.text("Steady", "ResourceAllocatableCPU"),
				AddOn: maybe(a, func() clusterv1beta1.AddOnScore {
					return clusterv1beta1.AddOnScore{ResourceName: a.text(), ScoreName: a.text()}
				}),
			}
		})}
	})
	spec.SpreadPolicy.SpreadConstraints = list(a, func() clusterv1beta1.SpreadConstraintsTerm {
		return clusterv1beta1.SpreadConstraintsTerm{
			TopologyKey: a.text(), TopologyKeyType: clusterv1beta1.TopologyKeyType(a.text("Label", "Claim")), MaxSkew: a.number(),
			WhenUnsatisfiable: clusterv1beta1.UnsatisfiableMaxSkewAction(a.text("DoNotSchedule")),
		}
	})
	spec.Tolerations = list(a, func() clusterv1beta1.Toleration {
		return clusterv1beta1.Toleration{
			Key: a.text(), Operator: clusterv1beta1.TolerationOperator(a.text("Exists")), Value: a.text(),
			Effect: clusterv1.TaintEffect(a.text("NoSelect")), TolerationSeconds: maybe(a, func() int64 { return rapid.Int64().Draw(a.T, "seconds") }),
		}
	})
	spec.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{
		ClustersPerDecisionGroup: intstr.IntOrString{Type: intstr.Type(rapid.IntRange(-1, 2).Draw(a.T, "type")), IntVal: a.number(), StrVal: a.text("10%")},
		DecisionGroups: list(a, func() clusterv1beta1.DecisionGroup {
			return clusterv1beta1.DecisionGroup{GroupName: a.text(), ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: a.labelSelector()}}
		}),
	}
	result.Status.LastScoreUpdateTime = maybe(a, func() metav1.Time { return metav1.NewTime(now) })
	return result
}

func (a anything) cluster() *clusterv1.ManagedCluster {
	result := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: a.text("c"), Labels: a.labels(), ResourceVersion: a.text()}}
	result.Spec.Taints = list(a, func() clusterv1.Taint {
		return clusterv1.Taint{Key: a.text(), Value: a.text(), Effect: clusterv1.TaintEffect(a.text("NoSelect", "PreferNoSelect", "NoSelectIfNew"))}
	})
	result.Status.ClusterClaims = list(a, func() clusterv1.ManagedClusterClaim {
		return clusterv1.ManagedClusterClaim{Name: a.text(), Value: a.text()}
	})
	return result
}

func (a anything) set() *clusterv1beta2.ManagedClusterSet {
	result := exclusiveSet(a.text())
	result.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.SelectorType(a.text("LabelSelector", "ExclusiveClusterSetLabel")),
		LabelSelector: maybe(a, a.labelSelector),
	}
	return result
}

func pointer[E any](a anything, draw func() *E) func() *E {
	return func() *E {
		if rapid.IntRange(0, 9).Draw(a.T, "nothing") == 0 {
			return nil
		}
		return draw()
	}
}

func (a anything) hub() *hub {
	h := newHub(list(a, pointer(a, a.cluster))...)
	h.clusters = append(h.clusters, managed("c"))
	h.sets = append(h.sets, list(a, pointer(a, a.set))...)
	h.bindings = append(h.bindings, list(a, pointer(a, func() *clusterv1beta2.ManagedClusterSetBinding { return binding(a.text("ns"), a.text()) }))...)
	if rapid.Bool().Draw(a.T, "score") {
		h.scores["c/a"] = &clusterv1alpha1.AddOnPlacementScore{Status: clusterv1alpha1.AddOnPlacementScoreStatus{
			Scores: list(a, func() clusterv1alpha1.AddOnPlacementScoreItem {
				return clusterv1alpha1.AddOnPlacementScoreItem{Name: a.text(), Value: a.number()}
			}),
			ValidUntil: maybe(a, func() metav1.Time { return metav1.Time{} }),
		}}
	}
	return h
}

// Whatever is wrong: no panic, and a mistake in the Placement always comes with
// its conditions and without a decision, unless there is nothing to choose from.
func TestMalformedObjects(t *testing.T) {
	s := newScheduler(t)
	rapid.Check(t, func(rt *rapid.T) {
		a := anything{rt}
		object, h := a.placement(), a.hub()
		if rapid.Bool().Draw(rt, "former") {
			h.decided(object.Namespace, object.Name, "c", "c", "", "gone")
		}
		wrong := s.Validate(object)
		result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
		require.NoError(rt, err)
		require.Equal(rt, len(wrong), len(result.Misconfigurations))
		require.Len(rt, result.Conditions, 3)
		for _, condition := range result.Conditions {
			require.LessOrEqual(rt, len(condition.Message), 32768)
			require.NotEmpty(rt, condition.Message)
		}
		for _, one := range wrong {
			require.NotEmpty(rt, one.Plugin)
			require.NotEmpty(rt, one.Path.String())
			require.NotEmpty(rt, one.Unwrap().Error())
		}
		if len(wrong) > 0 && len(result.Available.Clusters) > 0 {
			require.Nil(rt, result.Decision)
		}
		if result.Decision != nil {
			require.NotEmpty(rt, result.Decision.Objects(object))
		}
		status := result.ApplyTo(object.Status)
		require.Equal(rt, result.Decision == nil, status.DecisionGroups == nil)
		require.NotEmpty(rt, result.Describe())
		s.Forget(object.UID)
	})
}
