// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celset/celset/cel/meter"
)

// kind is an environment and a function that evaluates with cel-go alone. One kind has Kubernetes' libraries, as for devices,
// and the other kind has the libraries for clusters.
type kind struct {
	env     *celgo.Env
	config  meter.Config
	options []celgo.ProgramOption
	// optimize is passed to the meter's Plan.
	optimize bool
}

func variables() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.Variable("x", celgo.DynType), celgo.Variable("text", celgo.StringType), celgo.Variable("n", celgo.IntType),
		celgo.Variable("list", celgo.ListType(celgo.IntType)), celgo.Variable("words", celgo.ListType(celgo.StringType)),
		celgo.Variable("m", celgo.MapType(celgo.StringType, celgo.DynType)),
	}
}

func kubernetes(tb testing.TB) kind {
	tb.Helper()
	set := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	env, err := set.StoredExpressionsEnv().Extend(append(variables(), ext.Bindings(ext.BindingsVersion(0)))...)
	require.NoError(tb, err)
	return kind{
		env: env, optimize: true,
		config:  meter.Config{Estimator: &library.CostEstimator{}, OperatorsAsCEL: true, FreePresenceTests: true},
		options: []celgo.ProgramOption{celgo.CostLimit(10_000_000)},
	}
}

func clusters(tb testing.TB) kind {
	tb.Helper()
	env, err := celgo.NewEnv(append(variables(), celgo.OptionalTypes(), ext.Strings(), ext.Math(), ext.Sets(), ext.Bindings(), ext.TwoVarComprehensions(),
		library.Lists(library.ListsVersion(1)), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(),
		library.Format(), library.SemverLib(library.SemverVersion(1)))...)
	require.NoError(tb, err)
	return kind{
		env: env, optimize: true,
		config:  meter.Config{Estimator: &library.CostEstimator{}, OperatorsAsCEL: true, ChargesTexts: true},
		options: []celgo.ProgramOption{celgo.CostLimit(10_000_000), celgo.CostTracking(&library.CostEstimator{}), celgo.EvalOptions(celgo.OptOptimize)},
	}
}

func input() map[string]any {
	return map[string]any{
		"x": []any{int64(1), "a", 2.5, []any{"b"}, map[string]any{"k": int64(1)}}, "text": "some text, with commas, and Ünïcode",
		"n": int64(7), "list": []int64{5, 3, 9, 3, 1}, "words": []string{"to", "be", "or", "not", "to", "be"},
		"m": map[string]any{"a": int64(1), "b": "two", "c": []any{int64(3)}, "d": map[string]any{"e": "f"}},
	}
}

// expressions cover all kinds of steps of a plan.
var expressions = []string{
	"true", "n", "n + 1", "n == 7 && n != 8", "n < 8 || n > 9", "!(n >= 7)", "-n", "n > 5 ? text : words[0]", "(n > 5 ? m : m).a", "(n < 5 ? m.d : m.d).e",
	"text", "text.size()", "size(list)", "m.a", "m['a']", "m.d.e", "m['d']['e']", "m[words[5] == 'be' ? 'a' : 'b']", "m[(words.map(w, w))[0]]",
	"has(m.a)", "has(m.z)", "has(m.d.e)", "has(m.z.e)", "'a' in m", "'z' in m", "3 in list", "n in [1, 2, 7]", "n in [n, 2]", "m.?a.orValue(2)", "m.?z.orValue(2)",
	"m.?z.or(m.?a)", "m.?a.or(m.?z).value()", "m[?'z'].hasValue()", "m[?'d'][?'e'].value()", "optional.of(n)", "optional.none()", "m.?a.optMap(v, v)", "m.?z.optMap(v, v)",
	"list.all(i, i > 0)", "list.exists(i, i == 9)", "list.exists_one(i, i == 3)", "list.map(i, i * 2)", "list.filter(i, i > 3)", "list.map(i, i > 3, i + 1)",
	"m.all(k, k != 'z')", "m.map(k, m[k]).size()", "list.all(i, j, i < 9 && j > 0)", "m.exists(k, v, k == 'z')", "m.transformList(k, v, k).size()", "m.transformMap(k, v, 1)",
	"list.transformMapEntry(i, v, {string(i): v})", "words.map(w, words.filter(v, v == w).size())", "cel.bind(a, list.map(i, i), a + a + [n])",
	"[1, 2, 3]", "[n, n]", "{'a': n}", "{'a': 1}", "[?m.?a, ?m.?z]", "{?'a': m.?a, ?'z': m.?z}", "[]", "{}", "[[n], [n, n]]",
	"text + text", "text + 'x' == 'y'", "b'ab' + b'c'", "list + list", "[] + list", "list + []", "list == list", "words == ['to']", "m == m", "x == x",
	"text.contains('text')", "text.startsWith('some')", "text.endsWith('code')", "text.matches('^s[a-z]+ t')", "text.matches(words[0])", "text.matches('(' + words[0])",
	"text.find('[a-z]+')", "text.findAll('[a-z]+')", "text.findAll('[a-z]+', 2)", "text.findAll(words[0])", "text.find(words[0])",
	"text.charAt(3)", "text.indexOf('text')", "text.indexOf('text', 3)", "text.lastIndexOf('a')", "text.lowerAscii()", "text.upperAscii()", "text.replace('t', 'tt')", "text.replace('t', 'tt', 1)",
	"text.replace('', '-')", "text.split(',')", "text.split(',', 2)", "text.split('')", "text.substring(3)", "text.substring(3, 5)", "text.trim()", "words.join()", "words.join('-')", "[].join()",
	"strings.quote(text)", "'%s %d'.format([text, n])", "'%.2f'.format([2.5])", "string(n)", "int('12')", "double('1.5')", "uint(n)", "bool('true')", "bytes(text)", "string(b'a')", "string(2.5)",
	"duration('1h')", "timestamp('2026-01-01T00:00:00Z').getHours('+01:00')", "timestamp('2026-01-01T00:00:00Z') + duration(words[0] + 'x') > timestamp(0)", "duration(text) > duration('1s')",
	"timestamp('2026-01-01T00:00:00Z').getFullYear()", "duration('90m').getHours()", "type(n) == int", "dyn(n) == 7u", "dyn(n) < 2.5", "dyn(text) + dyn(n)", "x[0] + x[0]", "x[1] + x[1]", "x[0] + x[1]",
	"list.sum()", "list.min()", "list.max()", "list.isSorted()", "list.indexOf(9)", "list.lastIndexOf(3)", "words.isSorted()", "words.max()", "words.indexOf('not')", "['ab', 'c'].min()", "[].sum()",
	"sets.contains(list, [3])", "sets.equivalent(list, list)", "sets.intersects(list, [99])",
	"quantity('1.5Gi').isGreaterThan(quantity('1G'))", "quantity('1k').add(quantity('1')).asInteger()", "quantity('x')", "isQuantity(text)", "quantity('1') == quantity('1000m')",
	"semver('1.2.3').major()", "isSemver('1.2')", "semver('1.2.3').compareTo(semver('1.2.4-a'))", "ip('10.0.0.1').family()", "isIP(text)", "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
	"cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))", "ip.isCanonical('127.0.0.1')", "cidr('10.0.0.0/8').ip() == ip('10.0.0.0')", "string(ip('::1'))", "isCIDR(text)",
	"url('https://a.b/c?d=e').getHost()", "isURL(text)", "url('https://a.b/c?d=e').getQuery()", "format.dns1123Label().validate(text).hasValue()", "format.named('uuid').hasValue()",
	// Expressions that fail, or absorb a failure.
	"m.z", "m.z == 1", "m.z || true", "true || m.z", "m.z && false", "1 / (n - 7) == 1", "list[9]", "list[9] == 1 || n == 7", "list.exists(i, m.z == i)", "list.exists(i, m.z == i || i == 9)",
	"list.map(i, 10 / (i - 3))", "m.z ? 1 : 2", "x ? 1 : 2", "[m.z]", "{'a': m.z}", "m.z.orValue(1)", "n.orValue(1)", "x.all(i, i == 1)", "m[n]", "x[text]", "text.charAt(99)", "text.substring(5, 2)",
	"text.replace(m.b, m.z)", "text.replace(m.z, m.b)", "text.replace(m.a, m.b)", "words.join(m.z)", "x.join()", "string(x)", "timestamp(text)", "int(text)", "m.b + m.a", "x.sum()", "dyn(n).startsWith('a')",
	"dyn(list).matches('a')", "dyn('a').matches(m.b)", "dyn(n).matches(m.b)", "list.all(i, i / (i - 3) > 0)", "m.a.b.c", "has(m.a.b)", "m.?a.?b.hasValue()", "{'a': 1}[text]", "size(x[4])", "size(n == 7 ? x : x)",
}

// evaluate evaluates an expression with this package (by) and with cel-go alone (want).
func evaluate(tb testing.TB, in kind, text string) (by, want outcome) {
	tb.Helper()
	checked, issues := in.env.Compile(text)
	if issues.Err() != nil {
		tb.Skip(issues.Err())
	}
	program, err := in.env.Program(checked, in.options...)
	require.NoError(tb, err, text)
	value, details, err := program.Eval(input())
	want = outcome{value: value, err: err, cost: *details.ActualCost()}

	planner, err := meter.NewPlanner(in.env, in.config)
	require.NoError(tb, err)
	plan, err := planner.Plan(checked.NativeRep(), in.optimize)
	require.NoError(tb, err, text)
	activation, err := celgo.NewActivation(input())
	require.NoError(tb, err)
	value, expense, err := plan.Eval(tb.Context(), activation, meter.Limits{Cost: 10_000_000, Bytes: 1 << 20})
	by = outcome{value: value, err: err, cost: expense.Cost}
	return by, want
}

type outcome struct {
	value ref.Val
	err   error
	cost  uint64
}

// TestSameAsCELGo tests that this package returns the same values, errors, positions and costs as cel-go.
func TestSameAsCELGo(t *testing.T) {
	for name, in := range map[string]kind{"kubernetes": kubernetes(t), "clusters": clusters(t)} {
		for _, text := range expressions {
			t.Run(name+"/"+text, func(t *testing.T) {
				by, want := evaluate(t, in, text)
				if want.err != nil {
					require.EqualError(t, by.err, want.err.Error())
					requireSamePlace(t, want.value, by.value)
				} else {
					require.NoError(t, by.err)
					require.True(t, same(want.value, by.value), "%v\n%v", want.value, by.value)
				}
				require.Equal(t, want.cost, by.cost)
			})
		}
	}
}

func requireSamePlace(t *testing.T, want, by ref.Val) {
	t.Helper()
	failure, ok := want.(*types.Err)
	if !ok {
		return
	}
	require.IsType(t, want, by)
	require.Equal(t, failure.NodeID(), by.(*types.Err).NodeID())
}

// same reports whether two values are equal. It also accepts values such as NaN that don't equal themselves.
func same(a, b ref.Val) bool {
	return a.Type() == b.Type() && (a.Equal(b) == types.True || types.IsUnknownOrError(a.Equal(b)))
}
