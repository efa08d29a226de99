// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// preferenceCases returns the number of cases. It is smaller than in other random tests, because each case takes longer.
func preferenceCases() int { return cases.Of(1000, 20_000) }

// The test compares the search for the best set with repeated searches without preferences and bounds. The first of these
// searches finds any set. In each later search, an additional constraint accepts only better sets.
func TestPreferencesSameAsExhaustive(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	seen, improved, failed, several, cut := 0, 0, 0, 0, 0
	cases.CheckN(t, preferenceCases(), func(rt *rapid.T) {
		s := randomScenario(rt)
		s.Options = []option{WithEnvironment(environment)}
		unhurried := WithPreferenceBudget(1e8, 1e6)
		wanted := randomPreferences(rt, s.Claims)
		first, _ := s.answer(t, WithEnvironment(environment), WithExhaustiveSearch())
		want, goesOn := first, first.Results != nil
		for i := 0; i < len(wanted) && goesOn; i++ {
			want, goesOn = s.maximized(t, environment, want, wanted[:i], &wanted[i])
		}
		preferring := s.preferring(wanted)
		got, stats := preferring.answer(t, unhurried, WithEnvironment(environment))
		exhaustive, _ := preferring.answer(t, unhurried, WithEnvironment(environment), WithExhaustiveSearch())
		if diff := cmp.Diff(exhaustive.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})); diff != "" {
			rt.Fatalf("exhaustive: %s\n%s", diff, describeWanted(wanted))
		}
		if diff := cmp.Diff(devicesOf(want.Results), devicesOf(got.Results)); diff != "" || want.onNode != got.onNode {
			rt.Fatalf("brute force: %s\n%+v\n%+v\n%s", diff, want, got, describeWanted(wanted))
		}
		if got.Results != nil && len(wanted) > 0 {
			require.Equal(rt, !goesOn, stats.PreferencesBestFound > 0)
		}
		if stats.Cuts > 0 {
			cut++
		}
		seen++
		if first.Results != nil && want.Results != nil && !slices.Equal(devicesOf(first.Results), devicesOf(want.Results)) {
			improved++
		}
		if first.Results != nil && want.Results == nil {
			failed++
		}
		if len(wanted) > 1 {
			several++
		}
	})
	t.Logf("%d cases: better than the first %d, failed %d, with several preferences %d, cut %d", seen, improved, failed, several, cut)
	require.Greater(t, improved, seen/100)
	require.Greater(t, failed, seen/1000)
	require.Greater(t, several, seen/10)
	require.Greater(t, cut, seen/10)
}

// wantedPreference is a preference of the claim with the given index.
type wantedPreference struct {
	claim      int
	expression string
	requests   []string
	// value is the greatest possible value. isAboutNothing is true if the preference covers no device of the set.
	value          int64
	isAboutNothing bool
}

func describeWanted(wanted []wantedPreference) string {
	var all strings.Builder
	for _, w := range wanted {
		fmt.Fprintf(&all, "claim %d, requests %v: %s\n", w.claim, w.requests, w.expression)
	}
	return all.String()
}

// randomPreferences draws preferences for the claims, in the order of claims.
func randomPreferences(t *rapid.T, claims []*claimBuilder) []wantedPreference {
	var result []wantedPreference
	for i, c := range claims {
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "preferences") {
			w := wantedPreference{claim: i, expression: randomGoal(t, 2)}
			if oneIn(t, 3, "about some") {
				w.requests = []string{randomReference(t, c)}
			}
			result = append(result, w)
		}
	}
	return result
}

// randomGoal draws an expression of type int.
func randomGoal(t *rapid.T, depth int) string {
	k := rapid.IntRange(0, 5).Draw(t, "constant")
	if depth > 0 && oneIn(t, 3, "compound") {
		left, right := randomGoal(t, depth-1), randomGoal(t, depth-1)
		switch rapid.IntRange(0, 5).Draw(t, "operator") {
		case 0:
			return fmt.Sprintf("(%s + %s)", left, right)
		case 1:
			return fmt.Sprintf("(%s - %s)", left, right)
		case 2:
			return fmt.Sprintf("(%s * %d)", left, k-2)
		case 3:
			return fmt.Sprintf("(%s %% 3)", left)
		case 4:
			return fmt.Sprintf("(%s / (%s))", left, right)
		default:
			return fmt.Sprintf("(%s < %s ? %s : %d)", left, right, right, k)
		}
	}
	return rapid.SampledFrom([]string{
		indices + ".max()", "-" + indices + ".max()", indices + ".min()", "-" + indices + ".sum()", indices + ".sum()",
		fmt.Sprintf("devices.filter(d, %s %% 2 == 0).size()", indexOfD),
		fmt.Sprintf("devices.map(d, %s / 2).distinct().size()", indexOfD),
		fmt.Sprintf("(devices.exists(d, %s == %d) ? 1 : 0)", indexOfD, k),
		fmt.Sprintf("(devices.all(d, %s > %d) ? %d : 2)", indexOfD, k, k),
		fmt.Sprintf("-devices.filter(d, devices.exists(e, e != d && %s - %s == 1)).size()", indexOfD, strings.ReplaceAll(indexOfD, "d.attr", "e.attr")),
		indices + ".min() - " + indices + ".max()", indices + ".max() - " + indices + ".min()",
		fmt.Sprintf("%d - devices.map(d, %s / 2).distinct().size()", k, indexOfD),
		fmt.Sprintf("devices.map(d, %s * %d - 4).sum()", indexOfD, k),
		"devices.size()", fmt.Sprint(k), "-9223372036854775808", "9223372036854775807",
		"devices[0]." + strings.TrimPrefix(indexOfD, "d."),
		fmt.Sprintf("devices.filter(d, %s.color == 'red').size()", "d.attributes['"+driver+"']"),
		fmt.Sprintf("100 / (%s.sum() - %d)", indices, k),
	}).Draw(t, "goal")
}

// preferring returns the scenario with the preferences added to the claims.
func (s scenario) preferring(wanted []wantedPreference) scenario {
	s = s.copyOf()
	for i, w := range wanted {
		s.Claims[w.claim].Prefer(fmt.Sprintf("p%d", i), w.expression, w.requests...)
	}
	return s
}

// maximized repeatedly searches for a set with a greater value of the preference w. The values of earlier preferences in before
// must not fall. goesOn is false if the search failed for another reason than the preference.
func (s scenario) maximized(t *testing.T, environment *device.Environment, found response, before []wantedPreference, w *wantedPreference) (result response, goesOn bool) {
	expression, err := environment.CompileInt(t.Context(), w.expression)
	require.NoError(t, err)
	w.isAboutNothing = len(s.devicesFor(found, w)) == 0
	for !w.isAboutNothing {
		w.value, err = expression.Value(t.Context(), s.devicesFor(found, w), cel.NewBudget(1e8))
		if err != nil {
			return response{Err: err.Error()}, false
		}
		better := s.onlyChosen(found)
		for i, b := range before {
			if !b.isAboutNothing {
				name := fmt.Sprint("not_worse_", i)
				better.Claims[b.claim].Cel(name, b.requests...).Define(name, fmt.Sprintf("(%s) >= %d", b.expression, b.value))
			}
		}
		better.Claims[w.claim].Cel("better", w.requests...).Define("better", fmt.Sprintf("(%s) > %d", w.expression, w.value))
		next, err := better.allocator(t).Allocate(t.Context(), s.OnNode(), better.APIClaims())
		switch {
		case errors.Is(err, structured.ErrFailedAllocationOnNode) && !isEvaluationError(err):
			return found, true
		case err != nil && (strings.Contains(err.Error(), "constraint better,") || strings.Contains(err.Error(), "constraint not_worse")):
			return answerOf(nil, err), false
		case err != nil:
			return found, false
		}
		found = answerOf(next, nil)
	}
	return found, true
}

// devicesFor returns the found devices that the preference covers.
func (s scenario) devicesFor(found response, w *wantedPreference) []*device.Device {
	var result []*device.Device
	for _, r := range found.Results[w.claim].Devices.Results {
		parent, _, _ := strings.Cut(r.Request, "/")
		if len(w.requests) > 0 && !slices.Contains(w.requests, r.Request) && !slices.Contains(w.requests, parent) {
			continue
		}
		for _, slice := range s.Slices {
			for i := range slice.Spec.Devices {
				if slice.Spec.Devices[i].Name == r.Device {
					result = append(result, device.New(driver, &slice.Spec.Devices[i]))
				}
			}
		}
	}
	return result
}

// onlyChosen returns the scenario with only the alternatives that were chosen in found.
func (s scenario) onlyChosen(found response) scenario {
	s = s.preferring(nil)
	// With these options, a failure of an expression is an error even if it concerns only the node.
	s.Options = append(slices.Clone(s.Options), WithExhaustiveSearch(), WithReasons())
	for i, c := range s.Claims {
		dropped := map[string]bool{}
		for j := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[j]
			r.FirstAvailable = slices.DeleteFunc(r.FirstAvailable, func(sub resourceapi.DeviceSubRequest) bool {
				name := r.Name + "/" + sub.Name
				dropped[name] = !slices.ContainsFunc(found.Results[i].Devices.Results, func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Request == name })
				return dropped[name]
			})
		}
		isDropped := func(name string) bool { return dropped[name] }
		c.Spec.Devices.Constraints = slices.DeleteFunc(c.Spec.Devices.Constraints, func(constraint resourceapi.DeviceConstraint) bool {
			return len(constraint.Requests) > 0 && !slices.ContainsFunc(constraint.Requests, func(name string) bool { return !isDropped(name) })
		})
		for j := range c.Spec.Devices.Constraints {
			constraint := &c.Spec.Devices.Constraints[j]
			constraint.Requests = slices.DeleteFunc(constraint.Requests, isDropped)
		}
	}
	return s
}

func isEvaluationError(err error) bool {
	_, is := errors.AsType[*EvaluationError](err)
	return is
}
