// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types/ref"
)

// Load is an upper bound of the time and memory of a call.
type Load struct {
	// Nanoseconds is the approximate maximum time on a slow core.
	Nanoseconds float64
	// Bytes is the approximate maximum size of the result.
	Bytes float64
}

// Call has the properties of a call that determine its load.
type Call struct {
	// First, Second and Third are the target, if there is one, and the arguments. Missing operands are zero.
	First, Second, Third Operand
	// Result is the size of the result in bytes or elements, for functions that compute this size in advance.
	Result float64
	// Pattern is the regular expression in the second operand. Compiled is true if the regular expression is already compiled.
	Pattern
	Compiled bool
	// NoZone is true if no time zone must be loaded: the second operand is not a time zone, or is a cached one.
	NoZone bool
}

// LoadOf returns the load of a call. A larger operand never has a smaller load.
func LoadOf(function string, of Call) Load {
	load := unknownLoad
	if known, ok := loads[function]; ok {
		load = known.load
	}
	if load == nil {
		return Load{}
	}
	result := load(&of)
	if math.IsNaN(result.Nanoseconds) || math.IsNaN(result.Bytes) {
		// Zero times infinity is NaN. Each comparison with NaN is false, so a NaN would pass every limit.
		return Load{noLimit, noLimit}
	}
	return result
}

// unknownLoad returns the load of a function that is not listed. It assumes that the function traverses all operands and that
// the result may contain all of them.
func unknownLoad(c *Call) Load {
	all := c.First.Deep + c.Second.Deep + c.Third.Deep
	texts := c.First.Size + c.Second.Size + c.Third.Size
	return Load{100 + 50*all + 20*texts, 64*all + 4*texts}
}

// functionLoad describes how the load of a function is computed. If load is nil, the function takes no longer than its CEL cost
// ("free").
type functionLoad struct {
	load func(*Call) Load
	// deep says for each of the first two operands whether its nested values are counted.
	deep [2]bool
	// zoned means that the second operand of the function is a time zone.
	zoned bool
	// result computes the size of the result before the call.
	result func(values []ref.Val, limit float64) float64
}

// loads has the functions of the environments for devices and for clusters.
var loads = func() map[string]functionLoad {
	result := map[string]functionLoad{}
	add := func(is functionLoad, functions ...string) {
		for _, function := range functions {
			result[function] = is
		}
	}
	constant := func(nanoseconds float64) functionLoad {
		return functionLoad{load: func(*Call) Load { return Load{Nanoseconds: nanoseconds} }}
	}
	// reading returns the load of reading a text. base is the time of each call in nanoseconds. each is the time in
	// nanoseconds, and makes the number of created bytes, for each byte of the text.
	reading := func(base, each, makes float64) functionLoad {
		return functionLoad{load: func(c *Call) Load { return Load{base + each*c.First.Size, makes * c.First.Size} }}
	}
	first, second, both := [2]bool{true, false}, [2]bool{false, true}, [2]bool{true, true}

	// Free functions: they take no longer than their CEL cost.
	add(functionLoad{}, operators.LogicalNot, operators.Negate, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.Index, operators.OptIndex, operators.OptSelect,
		operators.NotStrictlyFalse, "__not_strictly_false__",
		"dyn", "type", "first", "last", "hasValue", "value", "or", "orValue",
		"optional.of", "optional.none",
		"sign", "major", "minor", "patch", "getScheme",
		"masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast",
		"math.abs", "math.bitAnd", "math.bitNot", "math.bitOr", "math.bitShiftLeft", "math.bitShiftRight", "math.bitXor",
		"math.ceil", "math.floor", "math.isFinite", "math.isInf", "math.isNaN", "math.round", "math.sign", "math.sqrt", "math.trunc")

	// Functions of values of any type.
	add(functionLoad{load: equalling}, operators.Equals, operators.NotEquals)
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 10 + min(c.First.Size, c.Second.Size)/8} }},
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, "startsWith", "endsWith")
	add(functionLoad{load: func(c *Call) Load { return appending(c.First.Size + c.Second.Size) }}, operators.Add)
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 10 + c.First.Size} }}, "size")
	add(functionLoad{deep: both, load: func(c *Call) Load {
		return Load{Nanoseconds: 20 + 25*min(c.Second.Size*c.First.Deep, c.Second.Deep+c.Second.Size)}
	}}, operators.In)
	add(functionLoad{deep: second, load: func(c *Call) Load {
		return Load{100 + 60*c.First.Size + 60*c.Second.Deep, 64 * (c.First.Size + c.Second.Size)}
	}}, "cel.@mapInsert")

	// Functions of texts. If a text is not a number or an address, the error quotes the text, even if the function returns a
	// bool.
	add(reading(80, 15, 1), "bool", "int", "uint", "double", "duration", "timestamp")
	add(reading(40, 6, 1), "charAt", "substring", "lowerAscii", "upperAscii", "trim")
	add(reading(50, 1, 1), "bytes")
	add(reading(150, 1, 1), "string")
	add(reading(60, 10, 6), "strings.quote")
	add(reading(250, 20, 2), "semver", "isSemver")
	add(reading(150, 24, 12), "ip", "isIP", "cidr", "isCIDR", "ip.isCanonical")
	add(reading(500, 20, 3), "url", "isURL")
	add(reading(300, 60, 12), "getQuery")
	add(reading(60, 6, 2), "getEscapedPath")
	add(reading(60, 6, 1), "getHost", "getHostname", "getPort")
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 20 + 2*(c.First.Size+c.Second.Size)} }}, "contains")
	add(functionLoad{result: replacedSize, load: func(c *Call) Load { return Load{60 + 4*c.First.Size + c.Result, c.Result} }}, "replace")
	add(functionLoad{result: splitSize, load: func(c *Call) Load { return Load{60 + 4*c.First.Size + 30*c.Result, 16 * c.Result} }}, "split")
	add(functionLoad{result: joinedSize, load: func(c *Call) Load { return Load{60 + 30*c.First.Size + c.Result, 2 * c.Result} }}, "join")
	add(functionLoad{deep: second, result: formattedSize, load: func(c *Call) Load {
		return Load{300 + 50*c.First.Size + 100*c.Second.Deep + c.Result/2, 4 * c.Result}
	}}, "format")
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 100 + c.First.Size} }}, "format.named")
	add(functionLoad{load: func(c *Call) Load { return Load{1_000 + 300*c.Second.Size, 8 * c.Second.Size} }}, "validate")
	add(functionLoad{load: matching}, "matches", "find")
	add(functionLoad{load: func(c *Call) Load {
		result := executing(c)
		// Each match may scan the rest of the text, and stores the positions of all groups.
		result.Nanoseconds += c.Steps * (c.First.Size + 1) * (2.5 + c.Groups + c.First.Size/2)
		result.Bytes += 24*c.First.Size + 24
		return result
	}}, "findAll")
	add(functionLoad{zoned: true, load: zoning}, "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds")

	// Functions of lists. Some of them also accept texts.
	add(functionLoad{load: func(c *Call) Load { return Load{40 + 20*c.First.Size, 16 * c.First.Size} }}, "slice", "reverse")
	// Each value of the list is unwrapped.
	add(functionLoad{load: func(c *Call) Load { return Load{40 + 60*c.First.Size, 16 * c.First.Size} }}, "unwrapOpt", "optional.unwrap")
	add(functionLoad{load: func(c *Call) Load { return Load{40 + 20*c.First.Value, 24 * c.First.Value} }}, "lists.range")
	add(functionLoad{result: flattenedSize, load: func(c *Call) Load { return Load{40 + 100*c.Result, 32 * c.Result} }}, "flatten")
	add(functionLoad{load: func(c *Call) Load {
		n := max(c.First.Size, c.Second.Size)
		return Load{100 + 60*n*math.Log2(n+2), 48 * n}
	}}, "sort", "@sortByAssociatedKeys")
	add(functionLoad{deep: first, load: func(c *Call) Load { return Load{Nanoseconds: 40 + 30*c.First.Deep} }},
		"isSorted", "sum", "min", "max", "math.@min", "math.@max")
	add(functionLoad{deep: first, load: func(c *Call) Load { return Load{40 + 30*c.First.Size*c.First.Deep, 16 * c.First.Size} }}, "distinct")
	// Functions that search for a value in a list, or for a text in a text.
	add(functionLoad{deep: both, load: func(c *Call) Load {
		return Load{50 + 12*(c.First.Size+c.Second.Size) + max(30*c.First.Deep, c.First.Size*c.Second.Size), 0}
	}}, "indexOf", "lastIndexOf")
	add(functionLoad{deep: second, load: func(c *Call) Load { return Load{Nanoseconds: 50 + 30*c.First.Size*c.Second.Deep} }}, "includes")
	add(functionLoad{deep: both, load: crossing}, "sets.contains", "sets.intersects")
	add(functionLoad{deep: both, load: func(c *Call) Load { return Load{Nanoseconds: 2 * crossing(c).Nanoseconds} }}, "sets.equivalent")
	add(functionLoad{deep: both, load: func(c *Call) Load {
		return Load{60 + 60*c.First.Deep*c.Second.Deep, 64 * (c.First.Size + c.Second.Size)}
	}}, "sameOrIncludes")

	// Functions of sets of devices.
	add(functionLoad{deep: first, load: relating}, "@connected", "@clique")
	add(functionLoad{deep: first, load: circling}, "@ring", "@path")
	add(functionLoad{deep: first, load: pairing}, "@paired")
	add(functionLoad{deep: both, load: boxing}, "@box")
	add(functionLoad{deep: first, load: segmenting}, "@segments")

	// Functions of Kubernetes' types.
	add(functionLoad{result: decimals, load: func(c *Call) Load {
		return Load{200 + 10*c.First.Size + c.First.Size*c.First.Size/600 + 1_500*c.Result, 2*c.First.Size + 800*c.Result}
	}}, "quantity", "isQuantity")
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 100 + min(c.First.Size, c.Second.Size)} }},
		"compareTo", "isGreaterThan", "isLessThan")
	add(constant(600), "add", "sub")
	add(constant(150), "asApproximateFloat")
	add(constant(100), "asInteger", "isInteger")
	add(functionLoad{load: func(c *Call) Load { return Load{Nanoseconds: 200 + 10*c.Second.Size} }}, "containsIP", "containsCIDR")
	return result
}()

func equalling(c *Call) Load { return Load{Nanoseconds: 20 + 25*min(c.First.Deep, c.Second.Deep)} }

// appending returns the load of copying a number of bytes or elements.
func appending(size float64) Load { return Load{30 + 50*size, 16 * size} }

// crossing returns the load of comparing each element of one list with each element of another.
func crossing(c *Call) Load {
	return Load{Nanoseconds: 40 + 60*min(c.First.Deep*c.Second.Size, c.Second.Deep*c.First.Size)}
}

// zoning returns the load of looking up a time zone, which is read from a file unless it is cached.
func zoning(c *Call) Load {
	if c.Second.Size == 0 || c.NoZone {
		return Load{}
	}
	return Load{Nanoseconds: 100_000 + 80*c.Second.Size}
}

func matching(c *Call) Load {
	result := executing(c)
	result.Nanoseconds += 2.5 * (c.First.Size + 1) * c.Steps
	return result
}

// executing returns the load of starting to match a pattern, and of compiling the pattern if it is not compiled yet. The
// matcher may allocate the positions of all groups for each instruction.
func executing(c *Call) Load {
	var room float64
	if c.Groups > 0 { // Avoid infinity times zero.
		room = 16 * c.Instructions * c.Groups
	}
	if c.Compiled {
		return Load{150 + 2*room, room}
	}
	// The pattern is parsed twice: to compute its size, and to compile it.
	return Load{2_000 + 2*c.Parsing + 400*c.Instructions + 2*room, 200*c.Instructions + 50*c.Ranges + 80*c.Second.Size + room}
}

// relating returns the load of reading a bool for each pair of elements and building a graph from the bools.
func relating(c *Call) Load { return Load{100 + 60*c.First.Deep, 100 + 40*c.First.Deep} }

// circling returns the load of searching a path through n elements. There are at most n paths for each set of elements, and the
// search ends after 4,096 steps.
func circling(c *Call) Load {
	result := relating(c)
	steps := min(4_096, c.First.Size*math.Exp2(min(c.First.Size, 12)))
	result.Nanoseconds += 600 * steps
	result.Bytes += 120 * steps
	return result
}

// pairing returns the load of computing a matching. The algorithm may read every pair once for each element.
func pairing(c *Call) Load {
	result := relating(c)
	result.Nanoseconds += 10 * c.First.Deep * c.First.Size
	return result
}

// boxing returns the load of sorting the numbers of each coordinate.
func boxing(c *Call) Load {
	values := c.First.Deep + c.Second.Deep + c.Third.Deep
	return Load{200 + values*(60+20*math.Log2(c.First.Size+2)), 200 + 64*values}
}

// segmenting returns the load of counting keys in a hash table.
func segmenting(c *Call) Load { return Load{200 + 150*c.First.Deep, 200 + 100*c.First.Deep} }
