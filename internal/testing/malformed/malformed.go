// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package malformed generates Placements, and objects that Placements depend on, with random mistakes. An API server would
// accept some of the objects and reject others. Most objects have only few wrong fields, so that the code under test gets far.
// In some objects all fields are wrong.
//
//	object := malformed.Placement(rand.New(rand.NewPCG(seed, 0)))
//
// Objects have only a few different names, so that references often match.
package malformed

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
)

// Names are the names that most objects and references have.
var Names = []string{"a", "b", "c"}

// source generates the fields of one object.
type source struct {
	*rand.Rand
	// oneIn is the average number of fields per wrong field.
	oneIn int
}

func from(random *rand.Rand) source {
	return source{random, []int{1, 10, 30, 100, 100, 100}[random.IntN(6)]}
}

func (s source) wrong() bool { return s.IntN(s.oneIn) == 0 }

func pick[E any](s source, from ...E) E { return from[s.IntN(len(from))] }

// text returns one of the fitting texts or, with probability 1/oneIn, an unusual text.
func (s source) text(fitting ...string) string {
	if s.wrong() {
		fitting = []string{"", "a", "x y", "é\xff", strings.Repeat("n", 300), "100%", "-1", "A/b/c", "\x00"}
	}
	return pick(s, fitting...)
}

func (s source) name() string { return s.text(Names...) }

// number returns one of the fitting numbers or, with probability 1/oneIn, an extreme number.
func (s source) number(fitting ...int32) int32 {
	if s.wrong() {
		fitting = []int32{0, -1, 11, -11, 101, -101, math.MaxInt32, math.MinInt32}
	}
	return pick(s, fitting...)
}

func list[E any](s source, draw func() E) []E {
	var result []E
	for range s.IntN(3) {
		result = append(result, draw())
	}
	return result
}

func maybe[E any](s source, draw func() E) *E {
	if s.IntN(2) == 0 {
		return nil
	}
	value := draw()
	return &value
}

func (s source) requirement() metav1.LabelSelectorRequirement {
	result := metav1.LabelSelectorRequirement{Key: s.name(), Operator: metav1.LabelSelectorOperator(s.text("In", "NotIn"))}
	if s.wrong() {
		result.Operator = metav1.LabelSelectorOperator(s.text("Exists", "Gt"))
	}
	result.Values = append(list(s, s.name), "a")
	if s.wrong() {
		result.Values = nil
	}
	return result
}

func (s source) labelSelector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: s.labels(), MatchExpressions: list(s, s.requirement)}
}

func (s source) labels(also ...string) map[string]string {
	result := map[string]string{}
	for range s.IntN(2) {
		result[s.text(append(also, Names...)...)] = s.name()
	}
	return result
}

func (s source) expression() string {
	if s.wrong() {
		return s.text("1", "managedCluster.", "nothing", "'", strings.Repeat("(", 1000), `managedCluster.scores(1)`, `"a".scores("a").size() > 0`)
	}
	return s.text(
		"true", "false", "managedCluster.x", "[1][2] == 1", `managedCluster.scores("a").exists(s, s.quantity > 1)`, `managedCluster.sets("a", "b", 8).now > 1`,
		`managedCluster.metadata.labels["a"].parseJSON()`, `quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("1"))`,
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.2.3"))`, `managedCluster.scores(managedCluster.metadata.name) == []`,
		`managedCluster.status.clusterClaims.exists(c, c.value.matches("(a|b)+"))`,
	)
}

// Cluster generates a ManagedCluster.
func Cluster(random *rand.Rand) *clusterv1.ManagedCluster {
	s := from(random)
	result := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: s.name(), UID: types.UID(s.text("u", "")), ResourceVersion: s.text("1", "2"),
		Labels: s.labels(clusterv1beta2.ClusterSetLabel),
	}}
	if s.wrong() {
		result.DeletionTimestamp = &metav1.Time{}
	}
	result.Spec.Taints = list(s, func() clusterv1.Taint {
		return clusterv1.Taint{
			Key: s.name(), Value: s.name(), Effect: clusterv1.TaintEffect(s.text("PreferNoSelect", "NoSelectIfNew", "NoSelect")),
			TimeAdded: metav1.NewTime(s.time()),
		}
	})
	result.Status.ClusterClaims = list(s, func() clusterv1.ManagedClusterClaim {
		return clusterv1.ManagedClusterClaim{Name: s.name(), Value: s.text("a", "", "1.30.1", `{"a":1}`)}
	})
	result.Status.Version.Kubernetes = s.text("v1.30.1", "1.2", "")
	result.Status.Allocatable, result.Status.Capacity = s.resources(), s.resources()
	return result
}

func (s source) time() time.Time {
	return time.Unix(pick(s, []int64{0, 1, 2_000_000_000, -62135596800, 253402300799}...), 0).UTC()
}

func (s source) resources() clusterv1.ResourceList {
	result := clusterv1.ResourceList{}
	for range s.IntN(3) {
		amount := pick(s, []string{"1", "0", "-5", "250m", "1Ti", "9E", "1e18", "0.000000001"}...)
		result[clusterv1.ResourceName(s.text("cpu", "memory"))] = resource.MustParse(amount)
	}
	if s.wrong() {
		result["cpu"] = *resource.NewQuantity(math.MinInt64, resource.BinarySI)
	}
	return result
}

// Score generates an AddOnPlacementScore.
func Score(random *rand.Rand) *clusterv1alpha1.AddOnPlacementScore {
	s := from(random)
	result := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), ResourceVersion: s.text("1", "2"),
		Annotations: map[string]string{cluster.QuantitiesAnnotation: s.text(`{"a":"5"}`, `{"a":"1Gi","b":"?"}`, `{"a":1}`, `[]`, `{`)},
	}}
	result.Status.Scores = list(s, func() clusterv1alpha1.AddOnPlacementScoreItem {
		return clusterv1alpha1.AddOnPlacementScoreItem{Name: s.name(), Value: s.number(-100, 0, 50, 100)}
	})
	result.Status.ValidUntil = maybe(s, func() metav1.Time { return metav1.NewTime(s.time()) })
	return result
}

// Set generates a ManagedClusterSet.
func Set(random *rand.Rand) *clusterv1beta2.ManagedClusterSet {
	s := from(random)
	result := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: s.name()}}
	result.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.SelectorType(s.text("", "LabelSelector", "ExclusiveClusterSetLabel")),
		LabelSelector: maybe(s, s.labelSelector),
	}
	return result
}

// Binding generates a ManagedClusterSetBinding.
func Binding(random *rand.Rand) *clusterv1beta2.ManagedClusterSetBinding {
	s := from(random)
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: s.name()},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: s.name()},
	}
}

// Decision generates a PlacementDecision.
func Decision(random *rand.Rand) *clusterv1beta1.PlacementDecision {
	s := from(random)
	result := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), Labels: map[string]string{s.text(clusterv1beta1.PlacementLabel): s.name()},
	}}
	result.Status.Decisions = list(s, func() clusterv1beta1.ClusterDecision {
		return clusterv1beta1.ClusterDecision{ClusterName: s.name(), Score: int64(s.number(1)), Reason: s.text("")}
	})
	return result
}

// Placement generates a Placement with metadata, spec and a time in its status.
func Placement(random *rand.Rand) *clusterv1beta1.Placement {
	s := from(random)
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), UID: types.UID(s.text("u", "")), Generation: int64(s.number(1, 2)),
		Annotations: map[string]string{wellknown.AnnotationTieBreak: s.text("random", "name")},
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
