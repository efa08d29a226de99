// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// complete is a correct Placement with every field.
const complete = `
metadata:
  name: p
  namespace: ns
  uid: u
  annotations: {celset.dev/placement: "true", celset.dev/tie-break: random}
spec:
  clusterSets: [global]
  numberOfClusters: 2
  predicates:
  - requiredClusterSelector:
      labelSelector: {matchLabels: {cloud: aws}, matchExpressions: [{key: a, operator: In, values: [b]}]}
      claimSelector: {matchExpressions: [{key: region, operator: Exists}]}
      celSelector: {celExpressions: ['managedCluster.metadata.name == "a"', 'managedCluster.scores("r").exists(s, s.value > 1)']}
  - requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}
  prioritizerPolicy:
    mode: Exact
    configurations:
    - {weight: 2, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}
    - {weight: -2, scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}
  spreadPolicy: {spreadConstraints: [{topologyKey: region, topologyKeyType: Claim, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}
  tolerations: [{key: a, operator: Exists, effect: NoSelect, tolerationSeconds: 5}, {key: b, operator: Equal, value: c}]
  decisionStrategy:
    groupStrategy:
      clustersPerDecisionGroup: 10%
      decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "1"}}}}]
  sortBy: Score
  scoreRateLimit: 1m
`

// values has the values that replace parts of a Placement.
var values = []any{
	nil, true, int64(0), int64(1), int64(-1), int64(11), int64(1) << 40, 1.5, []any{}, map[string]any{},
	"", "a", "x y", "1m", "-1m", "100%", "-1%", "In", "Gt", "Exists", "Equal", "Additive", "Exact", "Steady", "Spread", "Balance",
	"AddOn", "BuiltIn", "Label", "Claim", "ScheduleAnyway", "ClusterName", "name", "true", "1", "[1][2] == 1", "managedCluster.x.y",
	"managedCluster.metadata.name.startsWith('a') &&\n b", "'\\x00\n'", "é\u0000", strings.Repeat("n", 300), strings.Repeat("(", 1000),
	map[string]any{"x y": "z"}, []any{"true", "("}, []any{map[string]any{}}, []any{nil},
}

// malform replaces up to three parts of a JSON value. choose(n) returns a number from 0 to n-1.
func malform(content any, choose func(n int) int) {
	for range choose(4) {
		places := placesOf(content)
		set, value := places[choose(len(places))], values[choose(len(values))]
		set(value)
	}
}

// placesOf returns a function for each part of a JSON value, in a fixed order. The function replaces that part with a copy of
// its argument.
func placesOf(content any) []func(any) {
	var result []func(any)
	switch container := content.(type) {
	case map[string]any:
		keys := make([]string, 0, len(container))
		for key := range container {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			result = append(result, func(value any) { container[key] = runtime.DeepCopyJSONValue(value) })
			result = append(result, placesOf(container[key])...)
		}
	case []any:
		for i := range container {
			result = append(result, func(value any) { container[i] = runtime.DeepCopyJSONValue(value) })
			result = append(result, placesOf(container[i])...)
		}
	}
	return result
}

// draw returns the JSON of a Placement. It is usually malformed.
func draw(t require.TestingT, choose func(n int) int) []byte {
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(complete), &content))
	malform(content, choose)
	content["apiVersion"], content["kind"] = clusterv1beta1.GroupVersion.String(), "Placement"
	encoded, err := json.Marshal(content)
	require.NoError(t, err)
	return encoded
}

func chooser(t *rapid.T) func(n int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

// drawPlacement draws Placements until one has the right types, because the API server rejects wrong types before the webhook.
func drawPlacement(t *rapid.T) *clusterv1beta1.Placement {
	return rapid.Custom(func(t *rapid.T) *clusterv1beta1.Placement {
		object := &clusterv1beta1.Placement{}
		if json.Unmarshal(draw(t, chooser(t)), object) != nil {
			t.Skip("of other types")
		}
		return object
	}).Draw(t, "placement")
}

// TestSameAsTheController checks that the webhook admits a Placement if and only if the controller does not report it as
// misconfigured.
func TestSameAsTheController(t *testing.T) {
	scheduler, err := placement.NewScheduler(config)
	require.NoError(t, err)
	verdicts := map[bool]int{}
	cases.Check(t, func(rt *rapid.T) {
		object, checker := drawPlacement(rt), newChecker(t, true)
		result, err := scheduler.Schedule(t.Context(), object, &placement.Snapshot{}, time.Unix(1, 0))
		require.NoError(rt, err)
		condition := meta.FindStatusCondition(result.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
		verdict := judged(checker.Check(rt.Context(), object))
		if placement.Responsible(object, true) {
			require.Equal(rt, condition.Status == metav1.ConditionFalse, len(verdict.Errors) == 0, "%s\n%s", condition.Message, errorsOf(verdict))
		}
		for i, one := range result.Misconfigurations {
			require.Equal(rt, one.Path.String(), verdict.Errors[i].Field)
		}
		verdicts[len(verdict.Errors) == 0]++
	})
	require.NotZero(t, verdicts[true])
	require.NotZero(t, verdicts[false])
}

// TestUpdatesAreRatcheted checks that an update is rejected only for new mistakes.
func TestUpdatesAreRatcheted(t *testing.T) {
	checker := newChecker(t, true)
	cases.Check(t, func(rt *rapid.T) {
		old, object := drawPlacement(rt), drawPlacement(rt)
		now, then, got := judged(checker.Check(rt.Context(), object)), judged(checker.Check(rt.Context(), old)), judged(checker.CheckUpdate(rt.Context(), old, object))
		require.LessOrEqual(rt, len(got.Errors), len(now.Errors))
		require.GreaterOrEqual(rt, len(got.Errors), len(now.Errors)-len(then.Errors))
		for _, err := range got.Errors {
			require.Contains(rt, errorsOf(now), err.Error())
		}
		moved := old.DeepCopy()
		moved.Labels, moved.Finalizers = map[string]string{"a": "b"}, []string{"a/b"}
		slices.Reverse(moved.Spec.Predicates)
		slices.Reverse(moved.Spec.Tolerations)
		got = judged(checker.CheckUpdate(rt.Context(), old, moved))
		require.Empty(rt, got.Errors)
		require.GreaterOrEqual(rt, len(got.Warnings), len(then.Errors))
		for _, text := range got.Warnings {
			require.NotContains(rt, text, "\n")
		}
	})
}

// TestMalformedPlacements checks that the webhook answers any JSON without a panic.
func TestMalformedPlacements(t *testing.T) {
	checker := newChecker(t, true)
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	// With recovery enabled, a panic would also lead to an answer.
	webhook := crwebhook.WithValidator(scheme, checker.Validator()).WithRecoverPanic(false)
	count := cases.Of(300, 10_000)
	source, codes := rand.New(rand.NewPCG(cases.Seed(), 2)), map[int32]int{}
	last := draw(t, func(int) int { return 0 })
	for range count {
		raw := draw(t, source.IntN)
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
			request := crwebhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "u", Operation: operation, Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: last},
			}}
			response := webhook.Handle(t.Context(), request)
			require.NotNil(t, response.Result)
			require.Equal(t, response.Allowed, response.Result.Code == http.StatusOK)
			require.True(t, response.Allowed || response.Result.Message != "")
			require.Less(t, len(response.Result.Message), 100_000)
			codes[response.Result.Code]++
		}
		if json.Unmarshal(raw, &clusterv1beta1.Placement{}) == nil {
			last = raw
		}
	}
	require.Len(t, codes, 3)
	require.Greater(t, codes[http.StatusOK], count)
	require.Greater(t, codes[http.StatusBadRequest], count/10, "what is no Placement")
	require.Greater(t, codes[http.StatusUnprocessableEntity], count/10, "what is a misconfigured one")
}

// TestUnreadablePlacements checks objects that the API server stores but Go can't decode. They are rejected with the path of
// the field.
func TestUnreadablePlacements(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	webhook := crwebhook.WithValidator(scheme, newChecker(t, true).Validator()).WithRecoverPanic(false)
	for text, want := range map[string]string{
		`{"spec":{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":99999999999}}}}`: "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
		`{"spec":{"tolerations":[{"tolerationSeconds":1e30}]}}`:                                    "spec.tolerations.tolerationSeconds",
		`{"status":{"conditions":[{"lastTransitionTime":"2024-01-01T00:00:00+99:99"}]}}`:           `parsing time "2024-01-01T00:00:00+99:99"`,
	} {
		raw := `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",` + text[1:]
		response := webhook.Handle(t.Context(), crwebhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
		}})
		require.False(t, response.Allowed)
		require.Equal(t, int32(http.StatusBadRequest), response.Result.Code)
		require.Contains(t, response.Result.Message, want)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	object := placed(t, "predicates: ["+strings.Repeat(expressions(`"`+strings.Repeat("(", 3000)+`"`)+",", placement.MaxExpressions)+"]")
	checker := newChecker(t, false)
	require.Len(t, judged(checker.Check(t.Context(), object)).Errors, placement.MaxExpressions)
	_, err := checker.Validator().ValidateCreate(t.Context(), object)
	require.ErrorContains(t, err, "spec: Invalid value: 44 more fields are invalid")
	require.Less(t, len(err.Error()), 100_000)

	long := judged(checker.Check(t.Context(), placed(t, "predicates: ["+expressions(`"`+strings.Repeat("true && ", 30000)+`true"`)+"]"))).Errors
	require.Len(t, long, 1)
	require.ErrorContains(t, long[0], `celExpressions[0]: Invalid value: "true && true`)
	require.LessOrEqual(t, len(long[0].Error()), 5000)
}
