// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSearchOverBudgetHoldsNobodyUp has pods whose searches use up their budget
// before they have an answer. They are refused with a message that says how far the
// search got, and pods that come after them in the same scheduler get the devices.
func TestSearchOverBudgetHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, "budget", 1)
	driver := l.ring(t, 16).Drivers()[0]
	mla := request("mla", driver, 4)
	// No reading of the expression helps: it is evaluated on each of 1,820 sets.
	unread := fmt.Sprintf("devices.slice(0, 1).map(d, d.attributes[%q].index).size() == 2", driver)

	for name, tc := range map[string]struct {
		profile string
		want    []string
	}{
		"cost": {frugalProfile, []string{
			fmt.Sprintf("the evaluations together exceed the cost budget of %d CEL cost units, with ", frugalCost),
			"or raise budget.cost in the scheduler plugin's DynamicResourcesCELArgs",
		}},
		"steps": {briefProfile, []string{
			fmt.Sprintf("the search exceeds the step budget of %d steps, with ", briefSteps),
			"or raise budget.steps in the scheduler plugin's DynamicResourcesCELArgs",
		}},
	} {
		l.run(t, name, tc.profile, mla, constrained("unread", unread))
		l.requireRefused(t, name, append(tc.want,
			"claim "+l.namespace+"/"+name+", constraint unread, node "+l.nodes[0]+": ",
			" of 1820 sets of devices left undecided: narrow the candidates with selectors or matchAttribute, ")...)
	}

	// Both pods are tried again and again meanwhile. A search within the budget has its
	// answer.
	for i, profile := range []string{frugalProfile, celsetProfile, stockProfile} {
		name := fmt.Sprintf("other-%d", i)
		l.run(t, name, profile, variant{constrained: profile != stockProfile}.
			claim(constrained("ring4", contiguous(driver, 4)), mla)...)
		l.requireRunning(t, name)
		require.Len(t, l.devicesOf(t, name), 4)
	}
	for _, name := range []string{"cost", "steps"} {
		require.Empty(t, l.pod(t, name).Spec.NodeName)
		require.Empty(t, l.devicesOf(t, name))
	}
}
