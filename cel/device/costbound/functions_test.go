// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound_test

import (
	"context"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
)

// unbounded has the functions without a bound. The length of their result does not follow from their operands, or they need an
// API server.
var unbounded = sets.New("format", "validate", "url", "isURL", "getQuery", "getHost", "getHostname", "getPort", "getScheme", "getEscapedPath",
	"check", "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error", "errored",
	"fieldSelector", "labelSelector")

// calls has expressions that call the functions with bounds.
var calls = []string{
	"(d.attributes['d'].s + d.driver).size() > 0 && 'a' + d.attributes['d'].s < 'b' && d.driver <= 'd' && d.driver >= 'c' || d.driver > 'e'",
	"d.attributes['d'].s in d.attributes['d'].list || 1 in [1, 2, 3] || 'x' in d.attributes['d']",
	"-(5 - 3 * 2 / 1 % 7) == 1 && !false && type(1) == int && bool('true') && double('1.5') > 1.0 && int('1') == 1 && uint('1') == 1u",
	"duration('1h').getHours() + duration('1h').getMinutes() + duration('1h').getSeconds() + duration('1h').getMilliseconds() > 0",
	"timestamp('2026-01-01T00:00:00Z').getFullYear() + timestamp(0).getMonth() + timestamp(0).getDate() + timestamp(0).getDayOfMonth() + timestamp(0).getDayOfWeek() + timestamp(0).getDayOfYear() > 0",
	"string(bytes(string(d.attributes['d'].y) + d.attributes['d'].s)).size() + string(1.5).size() + string(duration('1h')).size() > 1",
	"d.attributes['d'].s.startsWith('a') || d.attributes['d'].s.endsWith(d.driver) || d.attributes['d'].s.contains(d.attributes['d'].s) || d.attributes['d'].s.charAt(0) == 'x'",
	"d.attributes['d'].s.matches('^(a|b)+$') || matches(d.driver, 'd+') || d.attributes['d'].s.find('a+') == 'a' || d.attributes['d'].s.findAll('ä').size() > 3 || d.driver.findAll('d', 1) == []",
	"(d.attributes['d'].s.lowerAscii() + d.attributes['d'].s.upperAscii().trim() + d.attributes['d'].s.substring(0)).size() > 0",
	"d.attributes['d'].s.split('').join('/').replace('/', '---').split('-', 3).join().size() > 0",
	"d.attributes['d'].s.replace('', 'xyz').replace('', 'xyz').contains('zz')",
	"strings.quote(strings.quote(d.attributes['d'].s)).size() > 4 && d.attributes['d'].s.indexOf('x') < d.attributes['d'].s.lastIndexOf('ä')",
	"devices.map(o, o.attributes['d'].list).flatten().all(x, x != 'q')",
	"dyn([[[1, 2], [3]], [[4]]]).flatten(2).map(x, x).size() == 4",
	"[[d.driver, 'b'], ['c']].flatten().sort().reverse().distinct().slice(0, 2) == ['c', 'b']",
	"lists.range(5).map(i, i).sum() == 10 && lists.range(3).isSorted() && [3, 1].min() < [3, 1].max() && [1, 2].includes(2)",
	"devices.sortBy(o, o.attributes['d'].s)[0].driver != ''",
	"sets.contains(d.attributes['d'].list, ['a']) || sets.intersects(d.attributes['d'].list, d.attributes['d'].list) || sets.equivalent(d.attributes['d'].list, ['a'])",
	"{'a': 1, 'b': 2}.transformMap(k, v, v + 1).transformList(k, v, k + string(v)).join() == 'a2b3'",
	"['a', 'b'].transformMapEntry(i, v, {v: i, v + v: i}).size() == 4",
	"d.attributes.transformMap(domain, ids, ids.transformList(id, value, id)).all(domain, domain != 'x')",
	"d.attributes['d'].?x.hasValue() && d.attributes['d'].?s.orValue('').size() + d.attributes['d'][?'s'].or(optional.of('a')).value().size() > 1",
	"optional.ofNonZeroValue(d.driver).optMap(x, x + x).hasValue() && [optional.of(1), optional.none()].unwrapOpt().size() == 1 && optional.unwrap([optional.of(1)]) == [1]",
	"[1, 2].first().value() < [1, 2].last().value()",
	"d.capacity['d'].memory.add(quantity('1Gi')).sub(1).compareTo(quantity('1Gi')) == 0 || d.capacity['d'].memory.isGreaterThan(quantity('1')) && isQuantity(d.driver)",
	"d.capacity['d'].memory.isInteger() && d.capacity['d'].memory.asInteger() + sign(d.capacity['d'].memory) > 0 && d.capacity['d'].memory.asApproximateFloat() > 0.0 && !d.capacity['d'].memory.isLessThan(quantity('1'))",
	"d.attributes['d'].version.major() + d.attributes['d'].version.minor() + d.attributes['d'].version.patch() > 0 && isSemver('1.0.0') && semver('v1.0', true).isLessThan(d.attributes['d'].version)",
	"ip('192.168.0.1').family() == 4 && isIP(d.driver) || ip.isCanonical('::1') && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1')) && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
	"cidr('::1/128').masked().prefixLength() == 128 && cidr('10.0.0.0/8').containsCIDR('10.0.0.0/9') && cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/9')) && isCIDR(string(cidr('::/0'))) && cidr('::/0').ip().isUnspecified()",
	"ip('::1').isLoopback() || ip('::1').isLinkLocalMulticast() || ip('::1').isLinkLocalUnicast() || ip('::1').isGlobalUnicast()",
	"devices.connected(a, b, a.driver == b.driver && d.driver != '') || devices.clique(a, b, a == d) || devices.filter(a, a != d).ring(a, b, a != b) || devices.path(a, b, b == d)",
	"devices.paired(devices.filter(o, o != d), a, b, a.attributes['d'].y < b.attributes['d'].y) || devices.paired(devices, a, b, a.driver == b.driver)",
	"devices.box(o, [o.attributes['d'].y, dyn(o.attributes['d'].y / 2)], [6, 3]) || devices.box(o, o.attributes['other'].numbers, [1, 1, 1, 1, 1, 1, 1, 1], [4, 4, 4, 4, 4, 4, 4, 9])",
	"devices.segments(2, o, [o.attributes['d'].s, o.attributes['d'].x]) || devices.filter(o, o != d).segments(6, o, o.attributes['other'].numbers)",
	"d.attributes['d'].list.sameOrIncludes(d.attributes['d'].s) || d.attributes['other'].numbers.sameOrIncludes(d.attributes['other'].numbers) || dyn(d.driver).sameOrIncludes(d.attributes['d'].list)",
	"math.greatest(d.attributes['d'].y, 2) > math.least(d.attributes['d'].y, 3, 4.5) && math.greatest(d.attributes['other'].numbers) > math.least(1, 2, 3) && math.abs(d.attributes['d'].y - 3) < 9",
	"math.sign(-1) == -1 && math.sqrt(d.attributes['d'].y) < 9.0 && math.ceil(1.5) + math.floor(1.5) + math.round(1.5) + math.trunc(1.5) > 1.0 && math.isFinite(1.0) && !math.isInf(1.0) && !math.isNaN(1.0)",
	"math.bitAnd(d.attributes['d'].y, 3) + math.bitOr(1, 2) + math.bitXor(1, 2) + math.bitNot(1) + math.bitShiftLeft(1, 2) + math.bitShiftRight(4, 1) > 0",
	// Values of unknown type.
	"dyn(d).attributes['d'].s.size() > 0 && dyn(dyn(d).attributes).d.list.size() > 0 && (d.driver == 'd' ? dyn(d) : dyn(1)).driver == 'd'",
	"dyn(d.attributes).all(domain, dyn(d.attributes)[domain].all(id, id != 'q'))",
	"[d.attributes['d'].s, d.attributes['d'].x, d.attributes['d'].y].max() == 1 || [dyn(d.attributes), dyn(1)].includes(2)",
	"[d.attributes['d'].list, d.attributes['d'].list].flatten().max() == d.attributes['d'].s || [d.attributes, d.attributes].indexOf(d.attributes) == 0",
	"devices.map(o, o.attributes).map(a, a['d']).lastIndexOf({'x': 1}) == -1 && devices.map(o, o.attributes['d'].list).includes(['a'])",
	"cel.bind(all, [d.attributes['d'].s + d.attributes['d'].s + d.attributes['d'].s], cel.bind(more, all + all + all, more.exists(x, x.contains(more.max() + more.min()))))",
	"devices.exists_one(o, has(o.attributes['d'].x)) || devices.existsOne(i, o, i == 1 && o == d) || has(d.attributes.d) && devices.filter(o, o == d)[0].driver == devices.filter(o, o == d)[dyn(0)].driver",
}

// TestEveryFunctionIsCharged evaluates each function that has a bound, on devices with long strings and lists.
func TestEveryFunctionIsCharged(t *testing.T) {
	e := environment(t)
	texts := []string{strings.Repeat("x", 64), strings.Repeat("ä", 32)}
	var set []*device.Device
	for i := range 6 {
		set = append(set, device.New("d", &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"s": {StringValue: &texts[i%2]}, "y": {IntValue: new(int64(i))}, "x": {StringValue: &texts[0]}, "version": {VersionValue: new("1.2.0")},
			"list": {StringValues: []string{texts[0], texts[1], "a", texts[0] + "b"}}, "other/numbers": {IntValues: []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {}}}))
	}
	left := sets.KeySet(e.Functions()).Difference(unbounded)
	maps.DeleteFunc(left, func(name string, _ sets.Empty) bool { return strings.HasPrefix(name, "format.") }) // for validate only
	for _, call := range calls {
		for name := range left {
			if mentions(t, e, call, name) {
				left.Delete(name)
			}
		}
		for _, text := range []string{"devices.all(d, " + call + ")", "devices.exists(d, " + call + ")", "cel.bind(d, devices[0], " + call + ")"} {
			expression := compile(t, e, text)
			requireBounded(t, expression, text, set, device.SizesOf(set))
			requireBounded(t, expression, text, set, device.LargestSizes())
		}
	}
	// The remaining names are other names of "in", and a function that only macros call.
	require.Empty(t, sets.List(left.Difference(sets.New("_in_", "in", "__not_strictly_false__"))))
}

func TestWithoutBound(t *testing.T) {
	e := environment(t)
	for _, text := range []string{
		"devices.map(d, d.driver).join('%s').format([devices.size()]) == '1'",
		"lists.range(devices.size()).all(i, i < 5)",
		"devices.map(d, d.attributes).map(a, dyn(a)).includes(1)",
		"[dyn([[['a']]]), dyn(1)].includes(1)",
		"dyn([['a']]).flatten(devices.size()).size() == 1",
	} {
		require.True(t, math.IsInf(costbound.Of(compile(t, e, text), 4, device.LargestSizes()).Units(), 1), text)
	}
}

// TestSumsOfAttributes checks sums whose operands may be numbers or strings. The walker can't decide between the two. But such
// a sum must not raise the assumed length of the attributes themselves.
func TestSumsOfAttributes(t *testing.T) {
	const sum = "(d.attributes['d'].x + o.attributes['d']['y'] - 1) * (d.attributes['d'].x * 2 + o.attributes['d'].y * 2) == 5 && " +
		"devices.map(p, p.attributes['d'].x).sum() + devices.map(p, p.attributes['d'].y).sum() > 0 && "
	text := "devices.all(d, devices.all(o, " + strings.Repeat(sum, 20) + "true))"
	expression := compile(t, environment(t), text)
	sizes := device.Sizes{Text: 64, Elements: 32}
	few, many := costbound.Of(expression, 4, sizes).Units(), costbound.Of(expression, 8, sizes).Units()
	require.Less(t, few, 200_000.)
	require.Less(t, many, 10*few)
}

// TestBoundIsALimit checks that an evaluation succeeds if its limit is the bound. With one unit less it may fail.
func TestBoundIsALimit(t *testing.T) {
	const text = "devices.all(d, d.driver == 'd')"
	bound := costbound.Of(compile(t, environment(t), text), 3, device.LargestSizes()).Units()
	set := []*device.Device{device.New("d", &resourceapi.Device{}), device.New("d", &resourceapi.Device{}), device.New("d", &resourceapi.Device{})}
	limited, err := device.NewEnvironment(cel.Config{CostLimit: uint64(bound)})
	require.NoError(t, err)
	expression := compile(t, limited, text)
	require.EqualValues(t, bound, expression.CostLimit())
	satisfied, err := expression.Satisfied(context.Background(), set, nil)
	require.NoError(t, err)
	require.True(t, satisfied)
}

func TestSelectors(t *testing.T) {
	judge, err := costbound.NewSelectors(cel.Config{})
	require.NoError(t, err)
	for _, text := range []string{
		"device.driver == 'gpu.example.com'",
		"device.attributes['gpu.example.com'].family == 'a' && device.attributes['gpu.example.com'].index < 4",
		"device.driver == 'a' && 'b' in device.attributes['a'] && device.attributes['a'].b.matches('^[a-z]+-[0-9]+$')",
		"device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0",
		"semver(string(device.attributes['a'].version)).isGreaterThan(semver('1.2.3'))",
		"device.attributes['a'].version.isGreaterThan(semver('1.2.3'))",
		"device.attributes['a'].names.exists(n, n.startsWith('x') || n in ['a', 'b', 'c'])",
		"device.attributes['a'].name.split('-').exists(p, p == 'x') && device.attributes['a'].name.replace('-', '_') == 'a_b'",
		"!has(device.attributes['a'].b) || device.attributes['a'].?b.orValue('x') == 'x'",
		"'%s-%d'.format([device.attributes['a'].name, 3]) == 'x-3'",
		"format.dns1123Label().validate(device.attributes['a'].name).hasValue() == false",
		"isURL(device.attributes['a'].name) && url(device.attributes['a'].name).getHost() == 'x'",
		"cidr('10.0.0.0/8').containsIP(device.attributes['a'].address)",
	} {
		_, err := judge.Judge(t.Context(), text, false)
		require.NoError(t, err, text)
	}
	for text, message := range map[string]string{
		"quantity('1e' + '2000000000') == quantity('1')":                                             "in quantity at line 1",
		"quantity('1e2000000000').isGreaterThan(quantity('1'))":                                      "in quantity at line 1",
		"device.driver.matches('((a{10}){10}){10}' + device.driver)":                                 "",
		"lists.range(900000).distinct().size() > 1":                                                  "in distinct at line 1",
		"'" + strings.Repeat("a", 4000) + "'.replace('', '" + strings.Repeat("b", 4000) + "') == ''": "in replace at line 1",
		strings.Repeat("[", 60) + strings.Repeat("]", 60) + " == []":                                 "a type has more than 32 names",
		"'%.2000000000f'.format([1.5]) == ''":                                                        "in format at line 1",
	} {
		_, err := judge.Judge(t.Context(), text, false)
		require.ErrorContains(t, err, message, text)
	}
}
