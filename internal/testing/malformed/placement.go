// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package malformed

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// Placement draws a Placement with spec, metadata and a time in its status.
func Placement(random *rand.Rand) *clusterv1beta1.Placement {
	s := from(random)
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), UID: types.UID(s.text("u", "")), Generation: int64(s.number(1, 2)),
		Annotations: map[string]string{placement.TieBreakAnnotation: s.text("random", "name")},
	}}
	s.selection(&result.Spec)
	s.prioritizers(&result.Spec)
	result.Spec.Tolerations = list(s, s.toleration)
	result.Spec.SpreadPolicy.SpreadConstraints = list(s, s.spread)
	result.Spec.DecisionStrategy.GroupStrategy = s.groups()
	result.Status.LastScoreUpdateTime = maybe(s, func() metav1.Time {
		return metav1.NewTime(time.Unix(s.Int64N(1<<40)-1<<39, 0))
	})
	return result
}

func (s source) selection(spec *clusterv1beta1.PlacementSpec) {
	spec.ClusterSets = list(s, s.name)
	spec.NumberOfClusters = maybe(s, func() int32 { return s.number(1, 2, 100) })
	spec.SortBy = clusterv1beta1.PlacementSortByType(s.text("", "ClusterName", "Score"))
	spec.ScoreRateLimit = s.text("", "1s", "0h", "1m")
	if s.wrong() {
		spec.ScoreRateLimit = s.text("99999999999999999h", "1.5h", "-1s", "m")
	}
	spec.Predicates = list(s, func() clusterv1beta1.ClusterPredicate {
		return clusterv1beta1.ClusterPredicate{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: s.labelSelector(),
			ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: list(s, s.requirement)},
			CelSelector:   clusterv1beta1.ClusterCelSelector{CelExpressions: list(s, s.expression)},
		}}
	})
}

func (s source) prioritizers(spec *clusterv1beta1.PlacementSpec) {
	spec.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeType(s.text("", "Exact", "Additive"))
	spec.PrioritizerPolicy.Configurations = list(s, func() clusterv1beta1.PrioritizerConfig {
		return clusterv1beta1.PrioritizerConfig{Weight: s.number(-10, -1, 1, 10), ScoreCoordinate: s.coordinate()}
	})
}

func (s source) coordinate() *clusterv1beta1.ScoreCoordinate {
	if s.wrong() {
		return maybe(s, func() clusterv1beta1.ScoreCoordinate {
			return clusterv1beta1.ScoreCoordinate{Type: s.text("AddOn", "BuiltIn", ""), BuiltIn: s.text("Spread")}
		})
	}
	if s.IntN(2) == 0 {
		return &clusterv1beta1.ScoreCoordinate{Type: s.text("AddOn"), AddOn: &clusterv1beta1.AddOnScore{ResourceName: s.name(), ScoreName: s.name()}}
	}
	return &clusterv1beta1.ScoreCoordinate{
		Type: s.text("BuiltIn"), BuiltIn: s.text("Steady", "Balance", "ResourceAllocatableCPU", "ResourceAllocatableMemory"),
	}
}

func (s source) toleration() clusterv1beta1.Toleration {
	result := clusterv1beta1.Toleration{
		Key: s.name(), Operator: clusterv1beta1.TolerationOperator(s.text("", "Equal")), Value: s.name(),
		Effect:            clusterv1.TaintEffect(s.text("", "NoSelect", "PreferNoSelect", "NoSelectIfNew")),
		TolerationSeconds: maybe(s, func() int64 { return int64(s.Uint64()) }),
	}
	if s.IntN(2) == 0 {
		result.Operator, result.Value = clusterv1beta1.TolerationOpExists, ""
	}
	return result
}

func (s source) spread() clusterv1beta1.SpreadConstraintsTerm {
	return clusterv1beta1.SpreadConstraintsTerm{
		TopologyKey: s.name(), TopologyKeyType: clusterv1beta1.TopologyKeyType(s.text("Label", "Claim")), MaxSkew: s.number(1, 2),
		WhenUnsatisfiable: clusterv1beta1.UnsatisfiableMaxSkewAction(s.text("DoNotSchedule", "ScheduleAnyway")),
	}
}

func (s source) groups() clusterv1beta1.GroupStrategy {
	length := pick(s, []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(200), intstr.FromString("10%"), intstr.FromString("100%")}...)
	if s.wrong() {
		length = intstr.IntOrString{Type: intstr.Type(s.IntN(4) - 1), IntVal: s.number(0), StrVal: s.text("10", "1000%", "%")}
	}
	return clusterv1beta1.GroupStrategy{
		ClustersPerDecisionGroup: length,
		DecisionGroups: list(s, func() clusterv1beta1.DecisionGroup {
			return clusterv1beta1.DecisionGroup{GroupName: s.text("aa", "bb"), ClusterSelector: clusterv1beta1.GroupClusterSelector{
				LabelSelector: s.labelSelector(),
				ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: list(s, s.requirement)},
			}}
		}),
	}
}
