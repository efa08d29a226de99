// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// now is the time of all decisions in tests.
var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// evaluations counts evaluations of CEL expressions in the environment that all tests share. A test that reads it must not run
// in parallel with others.
var evaluations = &counter{}

type counter struct {
	n int
	// then is called after each evaluation. It may be nil.
	then func()
}

func (c *counter) ObserveCompilation(string, bool, error) {}
func (c *counter) ObserveEvaluation(string, uint64, error) {
	c.n++
	if c.then != nil {
		c.then()
	}
}

// environment is shared by all tests, because creating one takes many milliseconds.
var environment = func() *cluster.Environment {
	result, err := cluster.NewEnvironment(cel.Config{Observer: evaluations, CacheBytes: 1 << 30})
	if err != nil {
		panic(err)
	}
	return result
}()

func newScheduler(t testing.TB) *placement.Scheduler {
	t.Helper()
	result, err := placement.NewScheduler(placement.Config{Environment: environment})
	require.NoError(t, err)
	return result
}

// hub is a hub that tests can change.
type hub struct {
	clusters  []*clusterv1.ManagedCluster
	sets      []*clusterv1beta2.ManagedClusterSet
	bindings  []*clusterv1beta2.ManagedClusterSetBinding
	scores    map[string]*clusterv1alpha1.AddOnPlacementScore
	decisions *placement.Decisions
	// written maps "namespace/name" of a Placement to those objects in decisions that the methods below have set.
	written map[string][]*clusterv1beta1.PlacementDecision
	// broken is the error that reading scores returns, or nil.
	broken error
}

// newHub returns a hub with these clusters. The set "global" has all clusters and is bound to the namespace "ns".
func newHub(clusters ...*clusterv1.ManagedCluster) *hub {
	return &hub{
		clusters:  clusters,
		sets:      []*clusterv1beta2.ManagedClusterSet{labelSet("global", &metav1.LabelSelector{})},
		bindings:  []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "global")},
		scores:    map[string]*clusterv1alpha1.AddOnPlacementScore{},
		decisions: placement.NewDecisions(),
		written:   map[string][]*clusterv1beta1.PlacementDecision{},
	}
}

func (h *hub) ScoreNames(namespace string) []string { return (&frozen{h.scores}).ScoreNames(namespace) }

func (h *hub) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return h.scores[namespace+"/"+name], h.broken
}

func (h *hub) snapshot() *placement.Snapshot {
	return &placement.Snapshot{Clusters: h.clusters, ClusterSets: h.sets, Bindings: h.bindings, Scores: h, Decisions: h.decisions}
}

// score creates or replaces an AddOnPlacementScore.
func (h *hub) score(namespace, name string, values map[string]int32) *clusterv1alpha1.AddOnPlacementScore {
	object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u", ResourceVersion: "1"}}
	if before := h.scores[namespace+"/"+name]; before != nil {
		object.ResourceVersion = before.ResourceVersion + "1"
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		object.Status.Scores = append(object.Status.Scores, clusterv1alpha1.AddOnPlacementScoreItem{Name: key, Value: values[key]})
	}
	h.scores[namespace+"/"+name] = object
	return object
}

// decided makes these clusters the former decision of a Placement.
func (h *hub) decided(namespace, of string, clusters ...string) {
	h.write(namespace+"/"+of, []*clusterv1beta1.PlacementDecision{decision(namespace, of, of+"-decision-1", clusters...)})
}

// write replaces all PlacementDecisions of a Placement with objects. It returns the steps that it took.
func (h *hub) write(key string, objects []*clusterv1beta1.PlacementDecision) []placement.Step {
	steps := placement.Updates(h.written[key], objects)
	for _, step := range steps {
		if step.Delete {
			h.decisions.Delete(step.Object.Namespace, step.Object.Name)
		} else {
			h.decisions.Set(step.Object)
		}
	}
	h.written[key] = objects
	return steps
}

// apply writes a result to the hub as the controller does, and returns the steps.
func (h *hub) apply(object *clusterv1beta1.Placement, result *placement.Result) (steps []placement.Step) {
	if result.Decision != nil {
		steps = h.write(object.Namespace+"/"+object.Name, result.Decision.Objects(object))
	}
	object.Status = result.ApplyTo(object.Status)
	return steps
}

func decision(namespace, of, name string, clusters ...string) *clusterv1beta1.PlacementDecision {
	result := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{clusterv1beta1.PlacementLabel: of},
	}}
	for _, c := range clusters {
		result.Status.Decisions = append(result.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return result
}

// managed returns a cluster with labels, each written as "key=value".
func managed(name string, labels ...string) *clusterv1.ManagedCluster {
	result := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "1", Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		result.Labels[key] = value
	}
	return result
}

// claiming adds claims to a cluster, each written as "name=value".
func claiming(c *clusterv1.ManagedCluster, claims ...string) *clusterv1.ManagedCluster {
	for _, claim := range claims {
		name, value, _ := strings.Cut(claim, "=")
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
	return c
}

// tainting adds a taint to a cluster. The taint is an hour old.
func tainting(c *clusterv1.ManagedCluster, key string, effect clusterv1.TaintEffect) *clusterv1.ManagedCluster {
	c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: key, Effect: effect, TimeAdded: metav1.NewTime(now.Add(-time.Hour))})
	return c
}

// sized sets both the allocatable amount and the capacity of a cluster's resource.
func sized(c *clusterv1.ManagedCluster, name clusterv1.ResourceName, amount string) *clusterv1.ManagedCluster {
	if c.Status.Allocatable == nil {
		c.Status.Allocatable, c.Status.Capacity = clusterv1.ResourceList{}, clusterv1.ResourceList{}
	}
	c.Status.Allocatable[name], c.Status.Capacity[name] = resource.MustParse(amount), resource.MustParse(amount)
	return c
}

func several(names ...string) []*clusterv1.ManagedCluster {
	var result []*clusterv1.ManagedCluster
	for _, name := range names {
		result = append(result, managed(name))
	}
	return result
}

func exclusiveSet(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}},
	}
}

func labelSet(name string, selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
	result := exclusiveSet(name)
	result.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: selector}
	return result
}

func binding(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// placed returns the Placement "p" in the namespace "ns". Its spec is written in YAML.
func placed(t testing.TB, spec string) *clusterv1beta1.Placement {
	t.Helper()
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 1}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "\t", "  ")), &result.Spec))
	return result
}

// withExpressions returns a spec whose only predicate has these CEL expressions.
func withExpressions(texts ...string) string {
	text, err := yaml.Marshal(map[string]any{"predicates": []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: texts},
	}}}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// schedule decides a Placement with a new Scheduler. It requires that Schedule returns no error.
func schedule(t testing.TB, object *clusterv1beta1.Placement, h *hub) *placement.Result {
	t.Helper()
	return decide(t, newScheduler(t), object, h)
}

func decide(t require.TestingT, s *placement.Scheduler, object *clusterv1beta1.Placement, h *hub) *placement.Result {
	result, err := s.Schedule(context.Background(), object, h.snapshot(), now)
	require.NoError(t, err)
	return result
}

// selected returns the names of the selected clusters in the order of the decision.
func selected(t testing.TB, result *placement.Result) []string {
	t.Helper()
	require.NotNil(t, result.Decision, described(result))
	names := []string{}
	for _, group := range result.Decision.Groups {
		for _, slice := range group.Slices {
			for _, d := range slice.Decisions {
				names = append(names, d.ClusterName)
			}
		}
	}
	return names
}

// scoresOf returns the scores by one prioritizer, for each cluster.
func scoresOf(t testing.TB, result *placement.Result, name string) map[string]int64 {
	t.Helper()
	i := slices.IndexFunc(result.Prioritizers, func(p placement.Prioritizer) bool { return p.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s took no part", name)
	scores := map[string]int64{}
	for _, c := range result.Candidates {
		scores[c.Cluster.Name] = c.Scores[i]
	}
	return scores
}

func requireCondition(t testing.TB, result *placement.Result, kind string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	condition := meta.FindStatusCondition(result.Conditions, kind)
	require.NotNil(t, condition)
	require.Equal(t, []string{string(status), reason}, []string{string(condition.Status), condition.Reason}, condition.Message)
	require.Contains(t, condition.Message, message)
}

func requireSatisfied(t testing.TB, result *placement.Result, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	requireCondition(t, result, clusterv1beta1.PlacementConditionSatisfied, status, reason, message)
}

// exactly returns a spec with the prioritizer mode Exact. A configuration is written as "name weight" of a built-in
// prioritizer.
func exactly(configurations ...string) string {
	return policy("Exact", configurations...)
}

func policy(mode string, configurations ...string) string {
	spec := "prioritizerPolicy:\n  mode: " + mode + "\n  configurations:\n"
	for _, c := range configurations {
		name, weight, _ := strings.Cut(c, " ")
		spec += fmt.Sprintf("  - weight: %s\n    scoreCoordinate: {type: BuiltIn, builtIn: %s}\n", weight, name)
	}
	return spec
}

// addOn returns the configuration of an AddOn prioritizer. It is appended to a spec of exactly.
func addOn(resource, score string, weight int) string {
	return fmt.Sprintf("  - weight: %d\n    scoreCoordinate: {type: AddOn, addOn: {resourceName: %s, scoreName: %s}}\n", weight, resource, score)
}

func spreadOver(more string, constraints ...string) string {
	return "spreadPolicy: {spreadConstraints: [" + strings.Join(constraints, ", ") + "]}\n" + more
}

func grouped(strategy string) string {
	return "decisionStrategy: {groupStrategy: {" + strategy + "}}"
}

// numbered returns clusters with the numbers first to last-1 in their names.
func numbered(first, last int) []*clusterv1.ManagedCluster {
	var result []*clusterv1.ManagedCluster
	for i := first; i < last; i++ {
		result = append(result, managed(fmt.Sprintf("c%04d", i)))
	}
	return result
}

// update replaces cluster i with a changed copy and a new resource version.
func (h *hub) update(i int, change func(*clusterv1.ManagedCluster)) {
	c := h.clusters[i].DeepCopy()
	version, err := strconv.Atoi(c.ResourceVersion)
	if err != nil {
		panic(err)
	}
	c.ResourceVersion = strconv.Itoa(version + 1)
	change(c)
	h.clusters = slices.Clone(h.clusters)
	h.clusters[i] = c
}

// uninterrupted returns answer. It panics if err is set, which happens only if a context ends.
func uninterrupted[T any](answer T, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}
