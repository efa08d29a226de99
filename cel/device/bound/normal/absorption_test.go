// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// notAbsorbed maps functions that may panic, so that an expression with bounds must not contain them, to the reason.
var notAbsorbed = map[string]string{
	"flatten":       "its cost is counted with a depth that may have failed",
	"lists.range":   "it is not made if it is too long",
	operators.In:    "values that can't be hashed are not looked up but panic",
	operators.OldIn: "values that can't be hashed are not looked up but panic",
}

// unreachable has the functions that no expression over devices can call, because there is no authorizer or the parser rejects
// the name.
var unreachable = []string{
	"allowed", "check", "error", "errored", "fieldSelector", "group", "labelSelector", "name", "namespace", "path", "reason",
	"resource", "serviceAccount", "subresource", "in", operators.OldIn, "__not_strictly_false__",
}

func environment(t *testing.T) *device.Environment {
	t.Helper()
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	return e
}

// TestEveryFunctionIsKnown checks that each function of the environment is listed in absorbed, notAbsorbed or unreachable, and
// that calls behave as listed.
func TestEveryFunctionIsKnown(t *testing.T) {
	e := environment(t)
	for name, declaration := range e.Functions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch reason, not := notAbsorbed[name]; {
			case slices.Contains(unreachable, name):
				require.False(t, absorbed.Has(name))
			case not:
				require.False(t, absorbed.Has(name), reason)
				require.NotZero(t, countAborts(t, e, calls(name, declaration)...), "it may be allowed by now")
			default:
				require.True(t, absorbed.Has(name), "a new function: see whether it fails as it should")
				require.Zero(t, countAborts(t, e, calls(name, declaration)...))
			}
		})
	}
	require.Empty(t, absorbed.Difference(sets.KeySet(e.Functions())), "these are not declared any more")
}

// TestSyntaxFailsAsItShould checks syntax other than calls. In the texts, $ is a placeholder for an operand.
func TestSyntaxFailsAsItShould(t *testing.T) {
	e := environment(t)
	for _, text := range []string{
		"$.a", "has($.a)", "$['a']", "$[0]", "[$]", "{'a': $}", "{?'a': optional.of($)}", "{1: $, 2: $}", "{true: $}",
		"$.all(x, x == 1)", "[1].all(x, $)", "$.exists(x, x == 1)", "[1].exists(x, $)", "$.exists_one(x, x == 1)", "[1].exists_one(x, $)",
		"$.map(x, x)", "[1].map(x, $)", "$.map(x, $, x)", "$.filter(x, true)", "[1].filter(x, $)",
		"$.all(i, x, x == i)", "[1].all(i, x, $)", "$.exists(i, x, $)", "$.existsOne(i, x, $)",
		"$.transformList(i, x, x)", "[1].transformList(i, x, $)", "$.transformList(i, x, $, x)", "$.transformMap(i, x, x)",
		"[1].transformMap(i, x, $)", "$.transformMapEntry(i, x, $)", "[1].transformMapEntry(i, x, $)",
		"$.optMap(x, x)", "$.optFlatMap(x, x)", "optional.of(1).optMap(x, $)", "optional.of(1).optFlatMap(x, $)",
		"cel.bind(x, $, x)", "cel.bind(x, $, [x, x])", "cel.bind(x, $, x + $)", "cel.bind(x, $, 1)",
		"$.matches('[ab]')", "'a'.matches($)", "true ? $ : 2", "string($) in ['a', 'b']", "int($) in {1: 2}", "double($) in [1.5]",
	} {
		require.Zero(t, countAborts(t, e, text), text)
	}
	require.NotZero(t, countAborts(t, e, "{$: 1}"), "keys of any type may be allowed by now")
}

// kinds are operands of all kinds of values, including errors.
var kinds = []string{
	"7", "-1", "9223372036854775807", "'a,b'", "''", "'['", "true", "1.5", "2u", "b'x'", "null",
	"[1, 2]", "['a', 'b']", "[dyn(1), dyn('a')]", "[[1], [2]]", "[]", "{'a': 1}", "{}", "devices", "devices[0]",
	"devices[0].attributes['d'].version", "[devices[0].attributes['d'].version]", "quantity('1Gi')", "timestamp('2026-01-01T00:00:00Z')",
	"duration('1s')", "optional.none()", "optional.of(1)", "int", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "url('https://a.b/c')", "format.uuid()",
}

// literals maps the name of a type to the text of a value.
var literals = map[string]string{
	"int": "1", "uint": "1u", "double": "1.5", "bool": "true", "string": "'a'", "bytes": "b'a'",
	"google.protobuf.Duration": "duration('1s')", "google.protobuf.Timestamp": "timestamp('2026-01-01T00:00:00Z')",
	"kubernetes.Quantity": "quantity('1')", "kubernetes.Semver": "semver('1.0.0')", "kubernetes.URL": "url('https://a.b/c')",
	"kubernetes.NamedFormat": "format.uuid()", "net.IP": "ip('10.0.0.1')", "net.CIDR": "cidr('10.0.0.0/8')",
}

// literal returns the text of a value of a type.
func literal(t *types.Type) string {
	switch t.Kind() {
	case types.ListKind:
		return "[" + literal(t.Parameters()[0]) + "]"
	case types.MapKind:
		return "{" + literal(t.Parameters()[0]) + ": " + literal(t.Parameters()[1]) + "}"
	case types.TypeParamKind, types.DynKind:
		return "1"
	}
	if t.TypeName() == "optional_type" {
		return "optional.of(" + literal(t.Parameters()[0]) + ")"
	}
	return literals[t.TypeName()]
}

// macros maps each function that a macro of package library expands to, without "@", to calls of the macro.
var macros = map[string][]string{
	"connected": {"$.connected(a, b, a == b)", "[1, 2].connected(a, b, $)", "[1].connected(a, b, [true][devices.size()])"},
	"clique":    {"$.clique(a, b, a == b)", "[1, 2].clique(a, b, $)", "[1].clique(a, b, [true][devices.size()])"},
	"ring":      {"$.ring(a, b, a == b)", "[1, 2].ring(a, b, $)", "[1].ring(a, b, [true][devices.size()])"},
	"path":      {"$.path(a, b, a == b)", "[1, 2].path(a, b, $)", "[1].path(a, b, [true][devices.size()])"},
	"box": {
		"$.box(a, [a], [2])", "$.box(a, a, [2])", "[1].box(a, $, [2])", "[1].box(a, [1], $)", "[1].box(a, [1], [1], $)", "[1].box(a, [$], [$])",
		"[1].box(a, [1], [1], [$])", "[1].box(a, [[1][devices.size()]], [2])",
	},
	"segments": {
		"$.segments(2, a, a)", "[1].segments($, a, a)", "[1].segments(2, a, $)", "[1].segments([2][devices.size()], a, a)",
		"[1].segments(2, a, [1][devices.size()])",
	},
	"paired": {"$.paired($, a, b, a == b)", "[1].paired([2], a, b, $)", "[1].paired([2], a, b, [true][devices.size()])"},
}

// extremes maps two functions that can't be called by name to the macros that expand to them.
var extremes = map[string]string{"math.@max": "math.greatest", "math.@min": "math.least"}

// calls returns texts of calls of a function, with $ for an operand of any kind. For each declaration, all operands are $, or
// one operand is $ and the others have the declared types. In other calls, all operands are failing values of the declared
// types. Functions that can't be called by name are called by their macros.
func calls(name string, f *decls.FunctionDecl) []string {
	switch name {
	case operators.NotStrictlyFalse, "cel.@mapInsert":
		return nil // see TestSyntaxFailsAsItShould
	case "@sortByAssociatedKeys":
		return []string{"[[2, 1][devices.size() + 1]].sortBy(x, x)", "[[1]][devices.size()].sortBy(x, x)"}
	}
	if macro := extremes[name]; macro != "" {
		return []string{macro + "($)", macro + "($, 1)", macro + "(1, $)", macro + "($, 1, $)", macro + "([1][devices.size()], 2)", macro + "([[1]][devices.size()])"}
	}
	if macro, ok := strings.CutPrefix(name, "@"); ok && macros[macro] != nil {
		return macros[macro]
	}
	var result []string
	for _, o := range f.OverloadDecls() {
		n := len(o.ArgTypes())
		any, good, failing := make([]string, n), make([]string, n), make([]string, n)
		for i, t := range o.ArgTypes() {
			any[i], good[i] = "$", literal(t)
			failing[i] = fmt.Sprintf("[%s][devices.size()]", good[i])
		}
		result = append(result, call(name, o.IsMemberFunction(), any), call(name, o.IsMemberFunction(), failing))
		for i := range any {
			one := slices.Clone(good)
			one[i] = "$"
			result = append(result, call(name, o.IsMemberFunction(), one))
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

func call(name string, member bool, args []string) string {
	operator, isOperator := operators.FindReverse(name)
	switch {
	case name == operators.Index:
		return args[0] + "[" + args[1] + "]"
	case name == operators.OptIndex:
		return args[0] + "[?" + args[1] + "]"
	case name == operators.OptSelect:
		return "dyn(" + args[0] + ").?a"
	case name == operators.Conditional:
		return fmt.Sprintf("(%s ? %s : %s)", args[0], args[1], args[2])
	case isOperator && len(args) == 1:
		return operator + args[0]
	case isOperator:
		return "(" + args[0] + " " + operator + " " + args[1] + ")"
	case member:
		return fmt.Sprintf("%s.%s(%s)", args[0], name, strings.Join(args[1:], ", "))
	default:
		return fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
	}
}

// countAborts evaluates each text with operands of all kinds, inside operators that absorb every error. It returns the number
// of evaluations that still fail. With more than two operands it skips some combinations.
func countAborts(t *testing.T, e *device.Environment, texts ...string) int {
	t.Helper()
	aborts := 0
	for _, text := range texts {
		operands := strings.Count(text, "$")
		for i := range operands {
			text = strings.Replace(text, "$", anyKind(i), 1)
		}
		expression, err := e.Compile(t.Context(), fmt.Sprintf("cel.bind(q, dyn(%s) == dyn(0), !(q && false) && (q || true))", text))
		require.NoError(t, err)
		choice := make([]int, operands)
		for more := true; more; more = next(choice) {
			satisfied, err := expression.Satisfied(t.Context(), []*device.Device{choosing(choice)}, nil)
			if err != nil {
				aborts++
			} else {
				require.True(t, satisfied)
			}
		}
	}
	return aborts
}

// anyKind returns the text of an operand that selects one of the kinds by index. The text fails if the index is out of range.
func anyKind(operand int) string {
	return fmt.Sprintf("[dyn(%s)][devices[0].attributes['d'].k%d]", strings.Join(kinds, "), dyn("), operand)
}

func choosing(choice []int) *device.Device {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"version": {VersionValue: ptr.To("1.2.3")}}
	for i, k := range choice {
		attributes[resourceapi.QualifiedName(fmt.Sprint("k", i))] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(k))}
	}
	return device.New("d", &resourceapi.Device{Name: "0", Attributes: attributes})
}

// next advances to the next combination of kinds. It returns false after the last combination.
func next(choice []int) bool {
	for i := range choice {
		step := 1
		if len(choice) > 2 && i > 0 {
			step = 8
		}
		if choice[i] += step; choice[i] <= len(kinds) {
			return true
		}
		choice[i] = 0
	}
	return false
}
