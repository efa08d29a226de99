// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// numbersOf and listsOf are expressions for lists that depend on a device. Some lists have no key, and some fail for some
// devices.
var (
	numbersOf = []string{"[D.y]", "[D.y / 2]", "[D.y, D.y / 2]", "[D.y / 3, D.y / 3]", "[1, 2].filter(x, x <= D.y / 2)", "[0, 1]",
		"lists.range(D.y)", "lists.range(64 + D.y)", "(D.y > 1 ? [] : [D.y])", "[D.y, 3].slice(0, 1)", "[1].filter(x, x / (D.y - 2) > 0)"}
	listsOf = []string{
		"[D.s]", "[D.s, '']", "['', D.s]", "[dyn(D.y / 3), dyn(D.s)]", "[string(D.y)]", "[D.y / 3 == 1]", "[double(D.y / 3)]", "[[D.y / 3]]",
		"[dyn(D.y / 3), dyn(1.0)]", "[6, 5, 1].map(x, x / (D.y - 3))", "D.list", "(D.list + ['b'])", "[dyn(1), dyn('1')]", "D.s.split(',')", "[D.version]",
		"dyn(D.y > 1 ? dyn([1]) : dyn(1))", "dyn(D.y > 1 ? dyn(D.list) : dyn('a'))", "[dyn(D.y > 1 ? dyn(1) : dyn(1.0))]", "[dyn(D.y == 1), dyn(D.y)]", "[uint(D.y)]", "[D.s].map(x, x.split('a')).flatten()",
	}
)

// ofTwoLists are conditions that compare the lists of two devices.
var ofTwoLists = []string{
	"devices.all(a, devices.all(b, LEFT == RIGHT))", "devices.exists(a, devices.exists(b, LEFT != RIGHT))", "devices.clique(a, b, LEFT == RIGHT)",
	"devices.all(a, devices.all(b, a == b || !sets.intersects(LEFT, RIGHT)))", "devices.all(a, devices.all(b, sets.contains(LEFT, RIGHT)))",
	"devices.filter(a, devices.exists(b, sets.equivalent(LEFT, RIGHT))).size() == 2", "devices.exists_one(a, devices.all(b, sets.equivalent(LEFT, RIGHT)))",
	"devices.map(b, devices.map(a, LEFT).distinct().size()).max() == 2", "devices.map(a, LEFT).distinct().size() < 3 || devices.exists(b, RIGHT == [])",
	"devices.all(b, devices.map(a, LEFT).flatten().distinct().size() < 3)", "devices.filter(a, a.attributes['d'].y > 1).map(a, LEFT).distinct().size() == 1",
}

// TestListsAreSound checks the bounds of comparisons of lists that belong to devices.
func TestListsAreSound(t *testing.T) {
	var seen statistics
	cases.CheckN(t, cases.Of(2000, 20_000), soundnessOf(t, &seen, func(t *rapid.T) string {
		draw := func(label string) string {
			device := rapid.SampledFrom([]string{"a", "a", "b", "b", "devices[0]"}).Draw(t, label+" of")
			return strings.ReplaceAll(rapid.SampledFrom(rapid.SampledFrom([][]string{numbersOf, listsOf}).Draw(t, "kind")).Draw(t, label), "D.", device+".attributes['d'].")
		}
		return strings.NewReplacer("LEFT", draw("left"), "RIGHT", draw("right")).Replace(rapid.SampledFrom(ofTwoLists).Draw(t, "condition"))
	}))
	t.Logf("%+v", seen)
	require.Greater(t, seen.compiled, 200)
	require.Greater(t, seen.understood, seen.tried/2)
	require.Greater(t, seen.decided, seen.tried/4)
}
