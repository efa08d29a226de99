// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

func TestWhatIsRefused(t *testing.T) {
	tests := map[string]struct {
		spec   string
		errors []string
	}{
		"nothing": {spec: "{}"},
		"everything right": {spec: `
predicates:
- requiredClusterSelector:
    labelSelector: {matchLabels: {cloud: aws}}
    claimSelector: {matchExpressions: [{key: region, operator: Exists}]}
    celSelector: {celExpressions: ['managedCluster.scores("r").exists(s, s.value > 1)']}
prioritizerPolicy: {mode: Exact, configurations: [{weight: -2, scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}]}
spreadPolicy: {spreadConstraints: [{topologyKey: region, topologyKeyType: Claim, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}
tolerations: [{operator: Exists}]
decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 10%, decisionGroups: [{groupName: canary, groupClusterSelector: {}}]}}
numberOfClusters: 3
`},
		"syntax": {
			`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.name =="]}}}]`,
			[]string{`spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: Invalid value: "managedCluster.metadata.name ==": ` +
				"ERROR: <input>:1:32: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n" +
				" | managedCluster.metadata.name ==\n" +
				" | ...............................^"},
		},
		"type": {
			`predicates: [{requiredClusterSelector: {}}, {requiredClusterSelector: {celSelector: {celExpressions: ["true", "\n 1 + 1"]}}}]`,
			[]string{`spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]: Invalid value: "\n 1 + 1": ` +
				"ERROR: <input>:1:1: the expression must return bool, it returns int\n | \n | ^"},
		},
		"long expression": {
			`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["` + strings.Repeat("true && ", 30000) + `true"]}}}]`,
			[]string{`spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: Invalid value: "true && true`},
		},
		"label selector": {
			`predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}}}]`,
			[]string{`spec.predicates[0].requiredClusterSelector.labelSelector: Invalid value: "Gt" is not a valid label selector operator`},
		},
		"claim selector": {
			`predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: a, operator: In}]}}}]`,
			[]string{`spec.predicates[0].requiredClusterSelector.claimSelector: Invalid value: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty`},
		},
		"mode and prioritizers": {
			`prioritizerPolicy: {mode: Most, configurations: [{weight: 11, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}, {weight: 1}, {weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Spread}}, {weight: 1, scoreCoordinate: {type: AddOn}}]}`,
			[]string{
				`spec.prioritizerPolicy.mode: Invalid value: "Most": incorrect prioritizer policy mode: Most; use Additive or Exact`,
				`spec.prioritizerPolicy.configurations[0].weight: Invalid value: 11: the weight 11 must be from -10 to 10`,
				`spec.prioritizerPolicy.configurations[1].scoreCoordinate: Required value: scoreCoordinate should not be empty`,
				`spec.prioritizerPolicy.configurations[2].scoreCoordinate.builtIn: Invalid value: "Spread": incorrect builtin prioritizer: Spread; use one of Balance, ResourceAllocatableCPU, ResourceAllocatableMemory, Steady; to spread decisions, use spec.spreadPolicy`,
				`spec.prioritizerPolicy.configurations[3].scoreCoordinate.addOn: Required value: addOn should not be empty unless the type is BuiltIn`,
			},
		},
		"the same prioritizer twice": {
			`prioritizerPolicy: {configurations: [{weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}, {weight: 2, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}`,
			[]string{`spec.prioritizerPolicy.configurations[1]: Invalid value: Steady is configured by spec.prioritizerPolicy.configurations[0] already; remove one of them`},
		},
		"tolerations": {
			`tolerations: [{operator: Equal}, {key: a, operator: Exists, value: b}, {}]`,
			[]string{
				`spec.tolerations[0].operator: Invalid value: "Equal": If the key is empty, operator must be Exists.`,
				`spec.tolerations[1].value: Invalid value: "b": If the operator is Exists, the value should be empty.`,
				`spec.tolerations[2].operator: Required value: If the key is empty, operator must be Exists.`,
			},
		},
		"spread": {
			`spreadPolicy: {spreadConstraints: [{topologyKey: "", topologyKeyType: Name, maxSkew: -1, whenUnsatisfiable: Never}]}`,
			[]string{
				`spec.spreadPolicy.spreadConstraints[0].topologyKey: Invalid value: "": the key is empty; name a label or a claim of clusters`,
				`spec.spreadPolicy.spreadConstraints[0].topologyKeyType: Invalid value: "Name": unknown type "Name"; use Label or Claim`,
				`spec.spreadPolicy.spreadConstraints[0].maxSkew: Invalid value: -1: the skew -1 must be at least 1`,
				`spec.spreadPolicy.spreadConstraints[0].whenUnsatisfiable: Invalid value: "Never": unknown action "Never"; use ScheduleAnyway or DoNotSchedule`,
			},
		},
		"too many constraints": {
			"spreadPolicy: {spreadConstraints: [" + strings.Repeat("{topologyKey: a, topologyKeyType: Label},", 9) + "]}",
			[]string{`spec.spreadPolicy.spreadConstraints: Invalid value: 9 constraints are too many; use at most 8`},
		},
		"groups": {
			`decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: many, decisionGroups: [{groupClusterSelector: {}}, {groupName: a b, groupClusterSelector: {labelSelector: {matchLabels: {"a b": c}}}}]}}`,
			[]string{
				`spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: Invalid value: "many": invalid value for IntOrString: invalid type: string is not a percentage; use a number or a percentage`,
				`spec.decisionStrategy.groupStrategy.decisionGroups[0].groupName: Required value: a decision group must have a name`,
				`spec.decisionStrategy.groupStrategy.decisionGroups[1].groupName: Invalid value: "a b": "a b": a valid label must be`,
				`spec.decisionStrategy.groupStrategy.decisionGroups[1].groupClusterSelector.labelSelector: Invalid value: `,
			},
		},
		"selection": {
			`{numberOfClusters: -1, sortBy: Age, scoreRateLimit: soon}`,
			[]string{
				`spec.numberOfClusters: Invalid value: -1: the number -1 is negative; leave it out to select all`,
				`spec.sortBy: Invalid value: "Age": unknown order "Age"; use ClusterName or Score`,
				`spec.scoreRateLimit: Invalid value: "soon": "soon" is no duration; write a number and a unit, such as 1m`,
			},
		},
	}
	checker := newChecker(t, false)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := placed(t, test.spec)
			before := object.DeepCopy()
			got := errorsOf(judged(checker.Check(t.Context(), object)))
			require.Empty(t, cmp.Diff(before, object), "it was modified")
			require.Len(t, got, len(test.errors), "%s", got)
			for i, want := range test.errors {
				require.Contains(t, got[i], want)
				require.LessOrEqual(t, len(got[i]), 5000)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	object := placed(t, "{}")
	object.Name = strings.Repeat("n", 64)
	object.Annotations[placement.TieBreakAnnotation] = "dice"
	got := errorsOf(judged(newChecker(t, false).Check(t.Context(), object)))
	require.Len(t, got, 2)
	require.Equal(t, `metadata.annotations[celset.dev/tie-break]: Invalid value: "dice": unknown order "dice"; use name or random`, got[0])
	require.Contains(t, got[1], `metadata.name: Invalid value: "nnn`)
	require.Contains(t, got[1], "as which PlacementDecisions have it: must be no more than 63 bytes")
}

func TestOnlyOurPlacementsAreChecked(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		annotations map[string]string
		deleted     *metav1.Time
		one, all    bool
	}{
		"ours":                   {annotations: ours(), one: true, all: true},
		"nobody's in particular": {all: true},
		"ours by half":           {annotations: map[string]string{placement.TakeAnnotation: "True"}, all: true},
		"disabled":               {annotations: map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}},
		"being deleted":          {annotations: ours(), deleted: &now},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object, former := placed(t, "numberOfClusters: -1"), placed(t, "numberOfClusters: 0")
			object.Annotations, object.DeletionTimestamp = test.annotations, test.deleted
			for all, want := range map[bool]bool{false: test.one, true: test.all} {
				checker := newChecker(t, all)
				require.Equal(t, want, len(judged(checker.Check(t.Context(), object)).Errors) == 1)
				require.Equal(t, want, len(judged(checker.CheckUpdate(t.Context(), former, object)).Errors) == 1)
				if !want {
					require.Empty(t, judged(checker.Check(t.Context(), object)).Warnings)
					require.Empty(t, judged(checker.CheckUpdate(t.Context(), former, object)).Warnings)
				}
			}
		})
	}
	require.Empty(t, judged(newChecker(t, true).Check(t.Context(), nil)))
	require.Empty(t, judged(newChecker(t, true).CheckUpdate(t.Context(), placed(t, "{}"), nil)))
	require.Len(t, judged(newChecker(t, true).CheckUpdate(t.Context(), nil, placed(t, "numberOfClusters: -1"))).Errors, 1)
}

// TestExpensiveExpressionsAreWarnedOf: how large clusters are is only assumed, so nothing is refused.
func TestExpensiveExpressionsAreWarnedOf(t *testing.T) {
	const nested = `managedCluster.metadata.labels.all(b, managedCluster.metadata.labels.all(c, managedCluster.metadata.labels.all(d, managedCluster.metadata.labels.all(e, b == e))))`
	object := placed(t, "predicates: [{requiredClusterSelector: {}}, {requiredClusterSelector: {celSelector: {celExpressions: ['true', '"+nested+"']}}}]")
	verdict := judged(newChecker(t, true).Check(t.Context(), object))
	require.Empty(t, verdict.Errors)
	require.Len(t, verdict.Warnings, 2)
	require.Contains(t, verdict.Warnings[1], "spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]: an evaluation may cost up to ")
	require.NotContains(t, verdict.Warnings[1], "\n")
}

// TestExpressionsThatAreNotFollowedAreWarnedOf: they are decided, but at each tick of the clock. The time of the check
// makes no difference.
func TestExpressionsThatAreNotFollowedAreWarnedOf(t *testing.T) {
	object := placed(t, "predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['now().getHours() > 8', 'string(now()) > \"2026-08-01\"']}}}]")
	verdict := judged(newChecker(t, true).Check(t.Context(), object))
	require.Empty(t, verdict.Errors)
	require.Len(t, verdict.Warnings, 1)
	require.Contains(t, verdict.Warnings[0], "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[1]: when the answer changes can't be told from now() in it, so it is evaluated every 10s")
	require.NotContains(t, verdict.Warnings[0], "\n")
	require.Empty(t, judged(newChecker(t, true).CheckUpdate(t.Context(), object, object)).Warnings)
}

func TestWarnings(t *testing.T) {
	shared := `metadata.annotations: other schedulers on the hub decide this Placement, too; keep them off with cluster.open-cluster-management.io/experimental-scheduling-disable: "true"`
	tests := map[string]struct {
		spec     string
		mutate   func(*clusterv1beta1.Placement)
		one, all []string
	}{
		"none": {spec: "predicates: [{requiredClusterSelector: {}}]"},
		"two schedulers": {
			spec:   "{}",
			mutate: func(p *clusterv1beta1.Placement) { delete(p.Annotations, clusterv1beta1.PlacementDisableAnnotation) },
			one:    []string{shared},
		},
		"no clusters": {
			spec: "numberOfClusters: 0",
			one:  []string{"spec.numberOfClusters: 0 selects no cluster; leave it out to select all"},
			all:  []string{"spec.numberOfClusters: 0 selects no cluster; leave it out to select all"},
		},
		"predicate that makes others useless": {
			spec: "predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['false']}}}, {requiredClusterSelector: {}}]",
			one:  []string{"spec.predicates[1].requiredClusterSelector: it is empty and matches every cluster, so the other predicates make no difference"},
			all:  []string{"spec.predicates[1].requiredClusterSelector: it is empty and matches every cluster, so the other predicates make no difference"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := placed(t, test.spec)
			if test.mutate != nil {
				test.mutate(object)
			}
			for all, want := range map[bool][]string{false: test.one, true: test.all} {
				checker := newChecker(t, all)
				require.Empty(t, judged(checker.Check(t.Context(), object)).Errors)
				require.Equal(t, want, judged(checker.Check(t.Context(), object)).Warnings)
				require.Len(t, judged(checker.CheckUpdate(t.Context(), placed(t, "{}"), object)).Warnings, len(want))
				require.Empty(t, judged(checker.CheckUpdate(t.Context(), object, object)).Warnings, "said when it was created")
			}
		})
	}
}
