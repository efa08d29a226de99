// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
)

const y, maps = ".attributes['d'].y", "devices.map(d, d.attributes['d'].y)"

// constructs are conditions on sets of three of six devices in a line, of which 0 and 5
// are chosen, with what is known of the completions.
var constructs = map[string]bound.Outcome{
	"devices.size() == 3":                                                         bound.True,
	"size(devices) == 4":                                                          bound.False,
	maps + ".max() - " + maps + ".min() == 3":                                     bound.False,
	maps + ".max() - " + maps + ".min() == 5":                                     bound.True,
	maps + ".sum() > 5":                                                           bound.True,
	maps + ".sum() == 7":                                                          bound.True | bound.False,
	maps + ".sum() * 2 == 100":                                                    bound.False,
	maps + ".distinct().size() == 3":                                              bound.True,
	maps + ".distinct().size() == 1":                                              bound.False,
	"devices.map(d, d.attributes['d'].s).distinct().size() == 3":                  bound.False,
	"devices.all(d, d" + y + " < 5)":                                              bound.False,
	"devices.all(d, d" + y + " < 6)":                                              bound.True,
	"devices.exists(d, d" + y + " == 0)":                                          bound.True,
	"devices.exists(d, d" + y + " == 7)":                                          bound.False,
	"devices.exists_one(d, d" + y + " > 2)":                                       bound.True | bound.False,
	"devices.exists_one(d, d" + y + " in [0, 5])":                                 bound.False,
	"devices.filter(d, d" + y + " == 9).size() == 1":                              bound.False,
	"devices.filter(d, d" + y + " > 0).map(d, d" + y + ").min() == 5":             bound.False,
	"devices.all(d, devices.filter(o, o" + y + " == d" + y + " + 1).size() == 1)": bound.False,
	"devices.all(d, devices.exists(o, d != o))":                                   bound.True,
	"!(devices.size() == 3) || devices.size() == 2":                               bound.False,
	"devices.size() == 3 ? devices.size() == 1 : true":                            bound.False,
	"(devices.exists(d, d" + y + " == 0) ? devices.size() : 0) == 0":              bound.False,
	"devices.exists(d, d.attributes['d'].missing == 1)":                           bound.Error,
	"devices.exists(d, d.attributes['d'].missing == 1) && devices.size() == 1":    bound.False,
	// One device stands for another inside.
	"devices.all(d, devices.all(d, d" + y + " < 6))": bound.True,
	// Names for something.
	"cel.bind(n, devices.size(), n == 4)":                                                                              bound.False,
	"cel.bind(l, " + maps + ", l.max() - l.min() == 3)":                                                                bound.False,
	"cel.bind(f, devices.filter(d, d" + y + " == 9), f.size() == 1)":                                                   bound.False,
	"cel.bind(l, 5, devices.all(d, d" + y + " < l))":                                                                   bound.False,
	"cel.bind(a, devices.size(), cel.bind(b, a + 1, cel.bind(a, b + a, a == 6)))":                                      bound.False,
	"cel.bind(a, devices.size() == 1, cel.bind(b, !a, devices.size() == 3 && b && a))":                                 bound.False,
	"cel.bind(x, 1 / (devices.size() - 3), devices.size() == 4)":                                                       bound.False,
	"cel.bind(x, 1 / (devices.size() - 3), x == 4)":                                                                    bound.Error,
	"cel.bind(x, 1 / (devices.size() - 3), x == 4 && devices.size() == 4)":                                             bound.False,
	"devices.all(d, cel.bind(r, d" + y + ", devices.exists(d, d" + y + " == r + 6)))":                                  bound.False,
	"devices.all(d, cel.bind(r, d" + y + ", devices.exists(o, cel.bind(p, o" + y + ", p - r == 6))))":                  bound.False,
	"cel.bind(d, 6, devices.exists(e, devices.filter(d, d" + y + " >= 0).exists(o, o" + y + " + e" + y + " > d * 2)))": bound.False,
	// CEL appends to the empty list itself.
	"cel.bind(l, [], l + devices.map(d, 1) != l)":     bound.Open,
	"cel.bind(l, [], devices.map(d, 1) + l == l + l)": bound.Open,
	// Some device of the set.
	"devices[0]" + y + " == 7":                                                  bound.False,
	"devices[2]" + y + " == 5":                                                  bound.True | bound.False,
	"devices[3]" + y + " == 5 && devices.size() == 4":                           bound.False,
	"devices[devices.size() - 1]" + y + " - devices[0]" + y + " > 5":            bound.False,
	"devices[0]" + y + " == devices[1]" + y:                                     bound.False,
	"devices.all(d, d.attributes['d'].s == devices[0].attributes['d'].s)":       bound.False,
	"!devices.all(d, d.attributes['d'].s == devices[0].attributes['d'].s)":      bound.True,
	"cel.bind(first, devices[0]" + y + ", devices.all(d, d" + y + " == first))": bound.False,
	"cel.bind(devices, [devices[0], devices[0]], devices[1]" + y + " == 9)":     bound.False,
	"[[[1]]].exists(devices, devices[0][0] == 1 && devices[0] != [1])":          bound.False,
	// Places are not known.
	"devices.all(i, d, i < 9)":                                                         bound.True,
	"devices.all(i, d, d" + y + " < 5 || d" + y + " > 7 && i == 2)":                    bound.False,
	"devices.exists(i, d, d" + y + " == 7 && i == 0)":                                  bound.False,
	"devices.existsOne(i, d, d" + y + " in [0, 5])":                                    bound.False,
	"devices.transformList(i, d, d" + y + ").max() == 4":                               bound.False,
	"devices.transformList(i, d, d" + y + " > 3, d" + y + ").min() == 6":               bound.False,
	"devices.transformList(i, d, i == 2, d" + y + ").min() == 6":                       bound.Error | bound.False,
	"devices.size() == 1 && devices.transformList(i, d, d" + y + ").distinct() == [0]": bound.False,
	// Values in the place of devices.
	maps + ".exists(v, v == 9)":                                                  bound.False,
	maps + ".all(v, v < 5)":                                                      bound.False,
	maps + ".exists_one(v, v in [0, 5])":                                         bound.False,
	maps + ".filter(v, v in [0, 5]).size() == 2":                                 bound.True,
	"3 > " + maps + ".filter(v, v in [0, 5]).size()":                             bound.True,
	maps + ".map(v, v * 2).filter(v, v > 4).max() == 10":                         bound.True,
	maps + ".map(v, v * 2).map(w, w + 1).sum() == 1":                             bound.False,
	maps + ".size() == 4":                                                        bound.False,
	"!" + maps + ".all(v, v < 6)":                                                bound.False,
	"devices.map(d, d.attributes['d'].missing).exists(v, true)":                  bound.Error | bound.False,
	"devices.map(d, d.attributes['d'].missing).size() == 3":                      bound.False | bound.Error,
	"devices.map(d, d).exists(v, v" + y + " == 9)":                               bound.False,
	"devices.all(d, devices.map(d, d" + y + ").exists(v, v == d" + y + " + 6))":  bound.False,
	"devices.all(d, devices.map(o, o != d, o" + y + ").all(v, v != d" + y + "))": bound.True,
	"devices.filter(d, d" + y + " > 4).map(d, d" + y + ").all(v, v == 4)":        bound.False,
	maps + ".exists(d, devices.exists(v, v" + y + " == d + 6))":                  bound.False,
	"devices.transformList(i, d, d" + y + " + i).exists(v, v == 9)":              bound.Open,
	maps + ".all(i, v, v < 5 || i > 7)":                                          bound.Open,
	// What filters leave.
	"devices.filter(d, d" + y + " > 0).map(d, d" + y + ").distinct().size() == 3": bound.False,
	"devices.filter(d, d" + y + " > 0).map(d, d" + y + ").distinct().size() == 2": bound.True,
	"devices.map(d, d" + y + " > 0, d.attributes['d'].s).distinct().size() == 4":  bound.False,
	"devices.filter(d, d" + y + " > 0).map(d, d" + y + ").sum() > 9":              bound.False,
	"devices.filter(d, d" + y + " == 0).map(d, d" + y + ").sum() == 0":            bound.True,
	"devices.filter(d, d" + y + " == 7).map(d, d" + y + ").sum() == 1":            bound.False,
	"devices.filter(d, d" + y + " == 7).map(d, double(d" + y + ")).sum() == 1.0":  bound.Open,
	// Patterns of devices.
	"devices.exists(d, devices.exists(o, d" + y + " + 5 == o" + y + " && d.attributes['d'].s != 'z'))":                      bound.True,
	"devices.exists(d, devices.exists(o, devices.exists(p, d" + y + " + 1 == o" + y + " && o" + y + " + 1 == p" + y + ")))": bound.False,
	"devices.exists(d, devices.exists(o, devices.exists(p, d" + y + " + 1 == o" + y + " && o" + y + " + 4 == p" + y + ")))": bound.True | bound.False,
	"devices.all(d, devices.exists(o, d != o && devices[0]" + y + " == 1))":                                                 bound.True | bound.False,
	"devices.all(d, devices.all(o, d == o || devices.exists(p, d" + y + " == p" + y + " && o" + y + " > p" + y + " + 5)))":  bound.False,
	// Values that speak of the set.
	"devices.map(d, devices.filter(o, o.attributes['d'].s == d.attributes['d'].s).size()).distinct().size() == 1":                      bound.True | bound.False,
	"devices.map(d, d.attributes['d'].s).distinct().map(t, devices.filter(d, d.attributes['d'].s == t).size()).distinct().size() == 1": bound.True | bound.False,
	"devices.map(d, devices.filter(o, o" + y + " < d" + y + ").size()).distinct().size() == 1":                                         bound.False,
	// Lists that are written out.
	"lists.range(3).exists(i, devices.map(d, d" + y + ").max() == i + 6)": bound.False,
	"[0, 1].filter(i, devices.exists(d, d" + y + " == i)).size() == 2":    bound.True | bound.False,
	"[0, 7].filter(i, devices.exists(d, d" + y + " == i)).size() == 2":    bound.False,
	"[0, 7].map(i, devices.filter(d, d" + y + " == i).size()) == [1, 1]":  bound.False,
	"[devices.size(), 2] == [3, 2]":                                       bound.True,
	"[devices.size(), 2] == [3, 2, 1]":                                    bound.False,
	"[devices.size(), 1 / 0] == [4, 2]":                                   bound.Error,
	"[devices.size()] in [[2], [4]]":                                      bound.False,
	// Lists as sets.
	"2 in " + maps: bound.True | bound.False,
	"9 in " + maps: bound.False,
	"devices.exists(d, d" + y + " - 6 in " + maps + ")":                                                              bound.False,
	"devices.all(d, d in devices.filter(o, o" + y + " < 5))":                                                         bound.False,
	"devices[0] in devices.filter(o, o" + y + " > 5)":                                                                bound.False,
	maps + ".sum() in [4, 10]":                                                                                       bound.False,
	maps + ".max() - " + maps + ".min() in [4, 6]":                                                                   bound.False,
	"devices.filter(d, d" + y + " in [0, 5]).size() in [0, 1]":                                                       bound.False,
	"sets.contains(" + maps + ", [5, 7])":                                                                            bound.False,
	"sets.contains([0, 1, 2, 3, 4], " + maps + ")":                                                                   bound.False,
	"sets.contains(" + maps + ".distinct(), devices.map(d, d" + y + " * 2))":                                         bound.False,
	"sets.intersects(" + maps + ", [7, 8])":                                                                          bound.False,
	"sets.intersects([7, 8], " + maps + ")":                                                                          bound.False,
	"sets.intersects(" + maps + ", devices.map(d, d" + y + " + 7))":                                                  bound.False,
	"sets.equivalent(" + maps + ", [0, 1, 2, 3])":                                                                    bound.False,
	"sets.equivalent(devices.map(d, d.attributes['d'].s), ['a'])":                                                    bound.False,
	"sets.equivalent(" + maps + ", devices.map(d, 5 - d" + y + "))":                                                  bound.True | bound.False,
	"devices.map(d, d.attributes['d'].s).distinct() == ['a']":                                                        bound.False,
	"['a'] != devices.map(d, d.attributes['d'].s).distinct()":                                                        bound.True,
	"devices.map(d, d.attributes['d'].s).distinct().all(x, devices.filter(d, d.attributes['d'].s == x).size() == 1)": bound.True | bound.False,
	maps + ".distinct().all(x, devices.exists(d, d" + y + " == x + 6))":                                              bound.False,
	maps + ".sort().max() == 5":                                                                                      bound.True,
	"[0, 5].all(n, devices.exists_one(d, d" + y + " == n))":                                                          bound.True,
	"[1, 2, 3].exists(i, n, devices.exists(d, d" + y + " == n + i * 10 + 20))":                                       bound.False,
	"[1, 2, 3].exists_one(n, devices.exists(d, d" + y + " == 5 * n))":                                                bound.True,
	"[[1], [2]].all(n, devices.exists(d, d" + y + " == n[0]))":                                                       bound.True | bound.False,
	// Either list, either way, the other way round.
	"(devices.size() == 3 ? devices : devices.filter(d, false)).size() == 2":                                       bound.False,
	"(devices.exists(d, d" + y + " == 2) ? devices : devices.filter(d, d" + y + " > 0)).all(d, d" + y + " < 5)":    bound.False,
	"(devices.exists(d, d" + y + " == 2) == devices.exists(d, d" + y + " == 7)) == devices.all(d, d" + y + " < 6)": bound.True | bound.False,
	"devices.exists(d, d" + y + " == 0) == true":                                                                   bound.True,
	"devices.exists(d, d" + y + " == 0) != devices.exists(d, d" + y + " == 5)":                                     bound.False,
	"!(!(devices.size() == 3))": bound.True,
	"!(devices.all(d, d" + y + " < 6) && devices.exists(d, d" + y + " == 0))": bound.False,
	"-" + maps + ".max() == -4":                          bound.False,
	"devices.size() % 2 == 0 || devices.size() / 2 == 2": bound.False,
	"devices.exists(e, devices.filter(d, d" + y + " > 0).filter(d, d != e).exists(d, d" + y + " == 9))": bound.False,
	// Lists that devices have.
	"devices.all(d, d.attributes['d'].l.all(x, devices.exists(o, o" + y + " == x)))":                                                                bound.False,
	"devices.all(d, d.attributes['d'].l.exists(x, devices.exists(o, o" + y + " == x)))":                                                             bound.True | bound.False,
	"devices.exists(d, d.attributes['d'].l.exists_one(x, devices.exists(o, o" + y + " == x + 7)))":                                                  bound.False,
	"devices[0].attributes['d'].l.exists(x, devices.all(o, x in o.attributes['d'].l))":                                                              bound.False,
	"devices.all(d, !sets.intersects(d.attributes['d'].l, devices.map(o, o" + y + " + 1)))":                                                         bound.True | bound.False,
	"devices.exists(d, sets.contains(d.attributes['d'].l + [d" + y + "], devices.map(o, o" + y + ")))":                                              bound.False,
	"devices.exists(d, sets.contains(devices.map(o, o" + y + "), d.attributes['d'].l))":                                                             bound.True,
	"devices.exists(d, d.attributes['d'].s.all(x, devices.exists(o, o" + y + " == 0)))":                                                             bound.Error,
	"[0, 1].all(i, devices[i]" + y + " - devices[i + 1]" + y + " > 5)":                                                                              bound.False,
	"devices.all(d, devices.all(o, d == o || o" + y + " in d.attributes['d'].l))":                                                                   bound.False,
	"sets.equivalent(devices.filter(d, d" + y + " < 3).map(d, d.attributes['d'].s), devices.filter(d, d" + y + " > 2).map(d, d.attributes['d'].s))": bound.True | bound.False,
	"sets.intersects(devices.filter(d, d" + y + " < 0).map(d, d.attributes['d'].s), devices.map(d, d.attributes['d'].missing))":                     bound.False | bound.Error,
	"devices.exists(d, d.attributes['d'].missing in devices.filter(o, o" + y + " < 0).map(o, o" + y + "))":                                          bound.Error,
	"devices.filter(d, d" + y + " > 9).map(d, d" + y + ").distinct() == [1]":                                                                        bound.False,
	"devices.filter(d, d" + y + " > 9).map(d, d" + y + ").sort() in [[1], [2]]":                                                                     bound.False,
	"devices.size() == 1 && " + maps + ".sort() in [[1], [2]]":                                                                                      bound.False,
	// Values that can't be compared with others are in no list, but equal as lists.
	"'1.0.0' in devices.map(d, d.attributes['d'].v)":                                            bound.False,
	"sets.contains(devices.map(d, d.attributes['d'].v), ['1.0.0', 'a'])":                        bound.False,
	"sets.contains(['1.0.0', 'a'], devices.map(d, d.attributes['d'].v))":                        bound.False,
	"sets.intersects(devices.map(d, d.attributes['d'].v), devices.map(d, d.attributes['d'].s))": bound.False,
	"devices.map(d, d.attributes['d'].v).distinct() == ['1.0.0']":                               bound.Open,
	maps + ".sum() in [1, 9007199254740993]":                                                    bound.Open,
	// Different values.
	"devices.map(d, d.attributes['d'].s).max() == devices.map(d, d.attributes['d'].s).min()":                                                                   bound.False,
	"devices.map(d, d.attributes['d'].s).min() == devices.map(o, o.attributes['d'].s).max()":                                                                   bound.False,
	"devices.map(d, d.attributes['d'].s).min() != devices.map(o, o.attributes['d'].s).max()":                                                                   bound.True,
	maps + ".min() == " + maps + ".max()":                                                                                                                      bound.False,
	"devices.map(d, d" + y + " / 2).min() == devices.map(d, d" + y + " / 2).max()":                                                                             bound.False,
	"devices.map(d, d" + y + " / 2).distinct().size() != 3":                                                                                                    bound.True | bound.False,
	"!(devices.map(d, d" + y + " / 2).distinct().size() >= 3)":                                                                                                 bound.True | bound.False,
	"devices.map(d, d" + y + " / 3).distinct().size() < 3":                                                                                                     bound.True,
	"devices.map(d, d.attributes['d'].l).distinct().size() < 3":                                                                                                bound.Open,
	"devices.map(d, d.attributes['d'].s == 'a' ? 1 : d.attributes['d'].l).distinct().size() == 3":                                                              bound.Open,
	"devices.map(d, d.attributes['d'].s == 'a' ? 1 : d.attributes['d'].s).max() == devices.map(d, d.attributes['d'].s == 'a' ? 1 : d.attributes['d'].s).min()": bound.Open,
	// Pairs in their order.
	"devices.all(i, d, devices.all(j, o, i == j || d" + y + " - o" + y + " < 5))":                bound.False,
	"devices.all(i, d, devices.all(j, o, i != j || d == o))":                                     bound.True,
	"devices.all(i, d, devices.all(j, o, i >= j || d" + y + " + o" + y + " < 5))":                bound.False,
	"devices.all(i, d, devices.all(j, o, j > i ? d" + y + " + o" + y + " < 5 : i == j || true))": bound.False,
	"devices.all(i, d, devices.all(j, o, i < j || d" + y + " > o" + y + "))":                     bound.False,
	"devices.all(i, d, devices.all(j, o, i <= j || d" + y + " > o" + y + "))":                    bound.True | bound.False,
	"devices.exists(i, d, devices.exists(j, o, i < j && d" + y + " + o" + y + " > 9))":           bound.False,
	"devices.all(i, d, [d].all(j, o, i < j || i >= 0))":                                          bound.True,
	"devices.all(i, d, devices.filter(e, e" + y + " > 0).all(j, o, i == j))":                     bound.Open,
	"devices.all(i, d, i + 1 <= devices.size())":                                                 bound.True,
	"devices.all(i, d, devices.all(i, o, i < i || d" + y + " + o" + y + " < 5))":                 bound.False,
	// Lists that are computed.
	"devices.all(d, (d.attributes['d'].s + ',z').split(',').all(x, devices.exists(o, o.attributes['d'].s == x)))":           bound.False,
	"devices.exists(d, sets.contains(devices.map(o, o.attributes['d'].s), (d.attributes['d'].s + ',z').split(',')))":        bound.False,
	"devices.all(d, [d" + y + ", dyn(9)].reverse().exists(x, devices.exists(o, o" + y + " == x)))":                          bound.True | bound.False,
	"devices.all(i, d, devices.all(j, o, i >= j || devices.all(k, e, i == k || e" + y + " < 5 || d" + y + " > 7)))":         bound.False,
	"devices.all(i, d, devices.all(j, o, i >= j || devices.exists(k, e, k == i && d == e) && d" + y + " + o" + y + " < 5))": bound.False,
	// What is not understood may become anything.
	// What may abort the evaluation is tried with all devices.
	"devices.all(d, d.attributes['d'].s in ['a', 'c'])":                                                bound.False,
	"devices.all(d, d.attributes['d'].v in ['a', 'c']) && devices.size() == 1":                         bound.Open,
	"devices.all(d, {d.attributes['d'].s: 1}.size() == 2)":                                             bound.False,
	"devices.all(d, [[d" + y + "]].flatten() == [7])":                                                  bound.False,
	"devices.size() == 1 && " + maps + ".distinct().sort() == [0]":                                     bound.False,
	"devices.size() == 1 && devices.map(d, d" + y + " > 0, d" + y + ").distinct() == [0]":              bound.False,
	"devices.size() == 1 && devices.map(d, d.attributes['d'].s, 1).distinct() == [0]":                  bound.False,
	"devices.size() == 1 && devices.all(d, devices.map(o, o" + y + " - d" + y + ").distinct() == [0])": bound.False,
	"devices.size() == 1 && devices.all(d, devices.map(o, o" + y + ").distinct() == [0])":              bound.False,
	// Functions whose failures nothing absorbs take all bounds away.
	"devices.size() == 4 && [devices.map(d, d" + y + ")].flatten() == [0]":                    bound.Open,
	"devices.size() == 4 && devices.map(d, d.attributes['d'].missing).distinct().size() == 1": bound.False,
}

// strange has devices in a line of which some lack attributes, or have others than the
// rest.
func strange() []*device.Device {
	all := line(5)
	for i, missing := range map[int]resourceapi.QualifiedName{1: "y", 2: "s", 3: "l"} {
		source := sourceOf(i)
		delete(source.Attributes, missing)
		all[i] = device.New("d", source)
	}
	odd := sourceOf(4)
	odd.Attributes["y"], odd.Attributes["s"], odd.Attributes["l"] = odd.Attributes["s"], odd.Attributes["v"], odd.Attributes["y"]
	all[4] = device.New("d", odd)
	return all
}

// What is said of partial sets in a construct is right, also if it fails for devices.
func TestConstructsAreSound(t *testing.T) {
	e := environment(t)
	for text := range constructs {
		t.Run(text, func(t *testing.T) {
			f := compiled(t, e, text)
			soundOf(f, 3, line(5)).checkAll(t)
			soundOf(f, 2, strange()).checkAll(t)
		})
	}
}

// notUnderstood are the expressions of the corpus of which a conjunct is open.
var notUnderstood = map[string]string{
	"ring: by place":                             "distinct may panic, and what it is asked about depends on places",
	"coupled: the same roots in order":           "two lists are compared place by place",
	"sockets: two requests on different sockets": "slices depend on places",
}

// read prepares an expression of the corpus.
func read(t *testing.T, e *device.Environment, x corpus.Expression) *sound {
	t.Helper()
	expression, err := e.Compile(t.Context(), x.Text)
	require.NoError(t, err)
	var all []*device.Device
	for _, d := range x.Hardware.Devices() {
		all = append(all, device.New(d.Driver, &d.Device))
	}
	size := 0
	for _, request := range x.Requests {
		size += request.Count
	}
	return soundOf(formula{x.Text, expression}, size, all)
}

// Every conjunct of the expressions that people write is understood, but for a few.
func TestCorpusIsUnderstood(t *testing.T) {
	e := environment(t)
	for _, x := range corpus.Expressions() {
		_, not := notUnderstood[x.Name]
		require.Equal(t, not, read(t, e, x).tables.Open() > 0, "%s\n%s", x.Name, x.Text)
	}
	t.Logf("%d expressions, all but %d understood in every conjunct", len(corpus.Expressions()), len(notUnderstood))
}

// Whatever devices of a node a partial set has.
func TestCorpusIsSound(t *testing.T) {
	e := environment(t)
	var all []*sound
	for _, x := range corpus.Expressions() {
		all = append(all, read(t, e, x))
	}
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "expression")
		p := partial(t, len(s.all), s.size)
		p.Forced = bitset.New(len(s.all))
		s.check(t, s.bounds(t), p, rapid.SampledFrom([]bound.Effort{bound.Quick, bound.Thorough}).Draw(t, "effort"))
	})
}
