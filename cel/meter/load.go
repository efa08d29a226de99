// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Load is what a call takes.
type Load struct {
	// Nanoseconds is how long it takes at most, about, on a slow core.
	Nanoseconds float64
	// Bytes is the size of what it makes at most, about.
	Bytes float64
}

// Call is a call as far as its load depends on it.
type Call struct {
	// Operands are the target, if there is one, and the arguments. Those that are missing
	// have no size.
	First, Second, Third Operand
	// Count is how many operands there are.
	Count int
	// Result is the size of the result where [ResultSize] has one: bytes of a text, elements
	// of a list.
	Result float64
	// Pattern is the regular expression that is the second operand, and Compiled tells that
	// it was compiled before.
	Pattern
	Compiled bool
	// NoZone tells that the second operand is no name of a time zone, or of one that is kept.
	NoZone bool
}

// LoadOf returns the load of a call of a function, which grows with each operand: for
// operands that are larger it is no smaller.
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
		// Nothing times what has no limit: nothing would be compared with it, and so be too much.
		return Load{noLimit, noLimit}
	}
	return result
}

// unknownLoad is that of a function that is not listed: it goes through all that it is given, and
// may return all of it.
func unknownLoad(c *Call) Load {
	all := c.First.Deep + c.Second.Deep + c.Third.Deep
	texts := c.First.Size + c.Second.Size + c.Third.Size
	return Load{100 + 50*all + 20*texts, 64*all + 4*texts}
}

// known is a function with a load. What is free is listed as well: it takes no longer than
// what it is charged with.
type known struct {
	load func(*Call) Load
	// deep are the operands of which all values are counted.
	deep [2]bool
	// zoned tells that the second operand is a time zone.
	zoned bool
	// result is the size of the result before it is made.
	result func(values []ref.Val, limit float64) float64
}

func constant(nanoseconds float64) known {
	return known{load: func(*Call) Load { return Load{Nanoseconds: nanoseconds} }}
}

// reading a text: so long for each byte, with so many bytes made of each.
func reading(base, each, makes float64) known {
	return known{load: func(c *Call) Load { return Load{base + each*c.First.Size, makes * c.First.Size} }}
}

var (
	free = known{}
	// parsing a text as a scalar. The error has the text in it.
	parsing = reading(80, 15, 1)
	// folding makes a text of the same length by way of its characters.
	folding = reading(40, 6, 1)

	equalling = known{load: func(c *Call) Load { return Load{Nanoseconds: 20 + 25*min(c.First.Deep, c.Second.Deep)} }}

	ordering = known{load: func(c *Call) Load {
		return Load{Nanoseconds: 10 + min(c.First.Size, c.Second.Size)/8}
	}}
	sorting = known{load: func(c *Call) Load {
		n := max(c.First.Size, c.Second.Size)
		return Load{100 + 60*n*math.Log2(n+2), 48 * n}
	}}
	copying = known{load: func(c *Call) Load { return Load{40 + 20*c.First.Size, 16 * c.First.Size} }}
	// Each value of the list is taken out of its optional.
	unwrapping = known{load: func(c *Call) Load { return Load{40 + 60*c.First.Size, 16 * c.First.Size} }}
	visiting   = known{deep: [2]bool{true, false}, load: func(c *Call) Load {
		return Load{Nanoseconds: 40 + 30*c.First.Deep}
	}}
	// crossing compares each element of one list with each of another.
	crossing = known{deep: [2]bool{true, true}, load: func(c *Call) Load {
		return Load{Nanoseconds: 40 + 60*min(c.First.Deep*c.Second.Size, c.Second.Deep*c.First.Size)}
	}}
	// seeking looks for a value among the elements of a list, or for a text in a text.
	seeking = known{deep: [2]bool{true, true}, load: func(c *Call) Load {
		return Load{50 + 12*(c.First.Size+c.Second.Size) + max(30*c.First.Deep, c.First.Size*c.Second.Size), 0}
	}}
	matching = known{load: func(c *Call) Load {
		result := executing(c)
		result.Nanoseconds += 2.5 * (c.First.Size + 1) * c.Steps
		return result
	}}
	// inZone looks a time zone up, which is read from a file unless it is kept.
	inZone = known{zoned: true, load: func(c *Call) Load {
		if c.Count < 2 || c.NoZone {
			return Load{}
		}
		return Load{Nanoseconds: 100_000 + 80*c.Second.Size}
	}}
	// What is no address stands in an error, quoted, also where only a bool is wanted.
	network = reading(150, 24, 12)
)

// executing is the load of compiling a pattern, if it was not, and of what executing it begins
// with: for each instruction it may make room for the ends of all groups.
func executing(c *Call) Load {
	var room float64
	if c.Groups > 0 { // there may be no limit to instructions
		room = 16 * c.Instructions * c.Groups
	}
	if c.Compiled {
		return Load{150 + 2*room, room}
	}
	// It is parsed twice: to see how large it is, and to compile it.
	return Load{2_000 + 2*c.Parsing + 400*c.Instructions + 2*room, 200*c.Instructions + 50*c.Ranges + 80*c.Second.Size + room}
}

// loads are those of all functions of the environments of devices and of clusters.
var loads = func() map[string]known {
	result := map[string]known{
		operators.Add: {load: func(c *Call) Load {
			total := c.First.Size + c.Second.Size
			return Load{30 + 50*total, 16 * total}
		}},
		operators.Equals:    equalling,
		operators.NotEquals: equalling,
		operators.In: {deep: [2]bool{true, true}, load: func(c *Call) Load {
			return Load{Nanoseconds: 20 + 25*min(c.Second.Size*c.First.Deep, c.Second.Deep+c.Second.Size)}
		}},
		"size": {load: func(c *Call) Load { return Load{Nanoseconds: 10 + c.First.Size} }},
		"cel.@mapInsert": {deep: [2]bool{false, true}, load: func(c *Call) Load {
			return Load{100 + 60*c.First.Size + 60*c.Second.Deep, 64 * (c.First.Size + c.Second.Size)}
		}},
		"charAt":        folding,
		"substring":     folding,
		"lowerAscii":    folding,
		"upperAscii":    folding,
		"trim":          folding,
		"bytes":         reading(50, 1, 1),
		"string":        reading(150, 1, 1),
		"startsWith":    ordering,
		"endsWith":      ordering,
		"contains":      {load: func(c *Call) Load { return Load{Nanoseconds: 20 + 2*(c.First.Size+c.Second.Size)} }},
		"indexOf":       seeking,
		"lastIndexOf":   seeking,
		"includes":      {deep: [2]bool{false, true}, load: func(c *Call) Load { return Load{Nanoseconds: 50 + 30*c.First.Size*c.Second.Deep} }},
		"replace":       {result: replacedSize, load: func(c *Call) Load { return Load{60 + 4*c.First.Size + c.Result, c.Result} }},
		"split":         {result: splitSize, load: func(c *Call) Load { return Load{60 + 4*c.First.Size + 30*c.Result, 16 * c.Result} }},
		"join":          {result: joinedSize, load: func(c *Call) Load { return Load{60 + 30*c.First.Size + c.Result, 2 * c.Result} }},
		"format":        {deep: [2]bool{false, true}, result: formattedSize, load: func(c *Call) Load { return Load{300 + 50*c.First.Size + 100*c.Second.Deep + c.Result/2, 4 * c.Result} }},
		"strings.quote": reading(60, 10, 6),
		"reverse":       {load: func(c *Call) Load { return Load{40 + 20*c.First.Size, 16 * c.First.Size} }},
		"matches":       matching,
		"find":          matching,
		"findAll": {load: func(c *Call) Load {
			result := executing(c)
			// Each match may look at all that is left, and notes where all groups are.
			result.Nanoseconds += c.Steps * (c.First.Size + 1) * (2.5 + c.Groups + c.First.Size/2)
			result.Bytes += 24*c.First.Size + 24
			return result
		}},
		"lists.range": {load: func(c *Call) Load { return Load{40 + 20*c.First.Value, 24 * c.First.Value} }},
		"distinct":    {deep: [2]bool{true, false}, load: func(c *Call) Load { return Load{40 + 30*c.First.Size*c.First.Deep, 16 * c.First.Size} }},
		"sort":        sorting, "@sortByAssociatedKeys": sorting,
		"slice": copying, "unwrapOpt": unwrapping, "optional.unwrap": unwrapping,
		"flatten":  {result: flattenedSize, load: func(c *Call) Load { return Load{40 + 100*c.Result, 32 * c.Result} }},
		"isSorted": visiting, "sum": visiting, "min": visiting, "max": visiting,
		"math.@min": visiting, "math.@max": visiting,
		"sets.contains": crossing, "sets.intersects": crossing,
		"sets.equivalent": {deep: crossing.deep, load: func(c *Call) Load {
			once := crossing.load(c)
			return Load{Nanoseconds: 2 * once.Nanoseconds}
		}},
		"@connected": {deep: [2]bool{true, false}, load: relating},
		"@clique":    {deep: [2]bool{true, false}, load: relating},
		"@ring":      {deep: [2]bool{true, false}, load: circling},
		"@path":      {deep: [2]bool{true, false}, load: circling},
		"@paired":    {deep: [2]bool{true, false}, load: pairing},
		"@box":       {deep: [2]bool{true, true}, load: boxing},
		"sameOrIncludes": {deep: [2]bool{true, true}, load: func(c *Call) Load {
			return Load{60 + 60*c.First.Deep*c.Second.Deep, 64 * (c.First.Size + c.Second.Size)}
		}},
		"quantity":   {result: decimals, load: quantityLoad},
		"isQuantity": {result: decimals, load: quantityLoad},
		"semver":     reading(250, 20, 2),
		"isSemver":   reading(250, 20, 2),
		"compareTo":  {load: comparingParts}, "isGreaterThan": {load: comparingParts}, "isLessThan": {load: comparingParts},
		"add": constant(600), "sub": constant(600), "asApproximateFloat": constant(150),
		"asInteger": constant(100), "isInteger": constant(100),
		"ip": network, "isIP": network, "cidr": network, "isCIDR": network, "ip.isCanonical": network,
		"containsIP":   {load: func(c *Call) Load { return Load{Nanoseconds: 200 + 10*c.Second.Size} }},
		"containsCIDR": {load: func(c *Call) Load { return Load{Nanoseconds: 200 + 10*c.Second.Size} }},
		"url":          reading(500, 20, 3), "isURL": reading(500, 20, 3),
		"getQuery": reading(300, 60, 12), "getEscapedPath": reading(60, 6, 2),
		"getHost": reading(60, 6, 1), "getHostname": reading(60, 6, 1), "getPort": reading(60, 6, 1),
		"format.named": {load: func(c *Call) Load { return Load{Nanoseconds: 100 + c.First.Size} }},
		"validate":     {load: func(c *Call) Load { return Load{1_000 + 300*c.Second.Size, 8 * c.Second.Size} }},
	}
	for _, function := range []string{"bool", "int", "uint", "double", "duration", "timestamp"} {
		result[function] = parsing
	}
	for _, function := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals} {
		result[function] = ordering
	}
	for _, function := range []string{
		"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds",
	} {
		result[function] = inZone
	}
	for _, function := range []string{
		operators.LogicalNot, operators.Negate, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.Index, operators.OptIndex, operators.OptSelect,
		operators.NotStrictlyFalse, "__not_strictly_false__",
		"dyn", "type", "first", "last", "hasValue", "value", "or", "orValue",
		"optional.of", "optional.none",
		"sign", "major", "minor", "patch", "getScheme",
		"masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast",
		"math.abs", "math.bitAnd", "math.bitNot", "math.bitOr", "math.bitShiftLeft", "math.bitShiftRight", "math.bitXor",
		"math.ceil", "math.floor", "math.isFinite", "math.isInf", "math.isNaN", "math.round", "math.sign", "math.sqrt", "math.trunc",
	} {
		result[function] = free
	}
	return result
}()

// relating reads a bool for each pair of elements, and makes a graph of them.
func relating(c *Call) Load { return Load{100 + 60*c.First.Deep, 100 + 40*c.First.Deep} }

// circling goes over ways through some of the elements: there are not more than n for each set of
// elements, and the search ends after 4,096.
func circling(c *Call) Load {
	result := relating(c)
	steps := min(4_096, c.First.Size*math.Exp2(min(c.First.Size, 12)))
	result.Nanoseconds += 600 * steps
	result.Bytes += 120 * steps
	return result
}

// pairing may ask each pair once for each element.
func pairing(c *Call) Load {
	result := relating(c)
	result.Nanoseconds += 10 * c.First.Deep * c.First.Size
	return result
}

// boxing sorts the numbers of each coordinate.
func boxing(c *Call) Load {
	values := c.First.Deep + c.Second.Deep + c.Third.Deep
	return Load{200 + values*(60+20*math.Log2(c.First.Size+2)), 200 + 64*values}
}

// decimals is 1 for a text that becomes a decimal of any size, and 0 if an int64 will do, as for
// most quantities people write.
func decimals(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if ok && (len(text) > 18 || strings.Contains(string(text), ".") && strings.HasSuffix(string(text), "i")) {
		return 1
	}
	return 0
}

func quantityLoad(c *Call) Load {
	return Load{200 + 10*c.First.Size + c.First.Size*c.First.Size/600 + 1_500*c.Result, 2*c.First.Size + 800*c.Result}
}

func comparingParts(c *Call) Load {
	return Load{Nanoseconds: 100 + min(c.First.Size, c.Second.Size)}
}

// replacedSize is that of a text in which one is replaced by a longer one.
func replacedSize(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if !ok || len(values) < 3 {
		return 0
	}
	old, _ := values[1].(types.String)
	by, _ := values[2].(types.String)
	growth := float64(len(by) - len(old))
	if growth <= 0 {
		return float64(len(text))
	}
	count := strings.Count(string(text), string(old))
	if len(values) == 4 {
		if limit, ok := values[3].(types.Int); ok && limit >= 0 {
			count = min(count, int(min(limit, math.MaxInt32)))
		}
	}
	return float64(len(text)) + float64(count)*growth
}

// splitSize is the number of parts.
func splitSize(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if !ok {
		return 0
	}
	by, _ := values[1].(types.String)
	return float64(strings.Count(string(text), string(by)) + 1)
}

// joinedSize is the length of all texts of a list together, with separators.
func joinedSize(values []ref.Val, limit float64) float64 {
	list, ok := values[0].(traits.Lister)
	if !ok {
		return 0
	}
	var separator types.String
	if len(values) > 1 {
		separator, _ = values[1].(types.String)
	}
	var size float64
	for it := list.Iterator(); it.HasNext() == types.True && size <= limit; {
		text, _ := it.Next().(types.String)
		size += float64(len(text) + len(separator))
	}
	return size
}

// formattedSize is the length of a text with values in it.
func formattedSize(values []ref.Val, _ float64) float64 {
	format, ok := values[0].(types.String)
	if !ok {
		return 0
	}
	return FormattedSize(string(format), counted(values[1]))
}

// FormattedSize is how long a text with so many values in it is at most. A number is written
// in 400 characters, and as many more as its precision says.
func FormattedSize(format string, values float64) float64 {
	const longest, perValue = 400, 6 * BytesPerValue
	size := float64(len(format)) + perValue*values
	number := 0.0
	for _, c := range format {
		if c >= '0' && c <= '9' {
			number = 10*number + float64(c-'0')
			continue
		}
		if c == '%' {
			size += longest
		}
		size += number
		number = 0
	}
	return size
}

// flattenedSize is the number of elements after lists in a list were dissolved.
func flattenedSize(values []ref.Val, _ float64) float64 {
	depth := types.Int(1)
	if len(values) > 1 {
		if given, ok := values[1].(types.Int); ok {
			depth = given
		}
	}
	return dissolved(values[0], depth, mostValues)
}

func dissolved(value ref.Val, depth types.Int, limit float64) float64 {
	list, ok := value.(traits.Lister)
	if !ok || depth < 0 {
		return 1
	}
	count := 1.0
	for it := list.Iterator(); it.HasNext() == types.True && count <= limit; {
		count += dissolved(it.Next(), depth-1, limit-count)
	}
	return count
}

// loader finds out the load of a call from its operands.
type loader func(*account, *call, []ref.Val) Load

// loaderOf is nil for functions that are free.
func (b *builder) loaderOf(function string) loader {
	is, listed := loads[function]
	switch {
	case function == operators.Add:
		return adding
	case function == operators.Equals || function == operators.NotEquals:
		return comparing
	case listed && is.load == nil:
		return nil
	case listed:
		return func(a *account, c *call, values []ref.Val) Load { return is.load(callOf(a, c, values, is)) }
	default:
		return func(a *account, c *call, values []ref.Val) Load {
			if b.loads != nil {
				if load, ok := b.loads.CallLoad(function, values); ok {
					return load
				}
			}
			return unknownLoad(callOf(a, c, values, everything))
		}
	}
}

var everything = known{deep: [2]bool{true, true}}

// callOf looks at the operands.
func callOf(a *account, c *call, values []ref.Val, is known) *Call {
	result := &a.call
	*result = Call{Count: len(values)}
	if len(values) > 0 {
		result.First = operandOf(values[0], is.deep[0])
		if _, inPlace := values[0].(traits.MutableMapper); inPlace && c.Function() == "cel.@mapInsert" {
			result.First = Operand{} // it is not copied
		}
	}
	if len(values) > 1 {
		if zone, ok := values[1].(types.String); ok && is.zoned {
			result.NoZone = isOffset(string(zone)) || isKept(string(zone))
		}
		// What is compared with a plain value is not looked into.
		into := is.deep[1] && (c.Function() != operators.In || !isPlain(values[0]))
		result.Second = operandOf(values[1], into)
		if !into {
			result.Second.Deep = noLimit
		}
	}
	if len(values) > 2 {
		result.Third = operandOf(values[2], is.deep[1])
	}
	if is.result != nil {
		result.Result = is.result(values, a.bytesLeft())
	}
	if isMatching(c.Function()) {
		result.Pattern, result.Compiled = c.patternOf(values)
	}
	return result
}

// isOffset reports whether a time zone is written so that it needs no file.
func isOffset(zone string) bool {
	return zone == "" || zone == "UTC" || strings.Contains(zone, ":")
}

// adding is by far the most frequent call: numbers are free, and the list that a macro
// makes is appended to in place.
func adding(_ *account, _ *call, values []ref.Val) Load {
	switch first := values[0].(type) {
	case types.String:
		second, _ := values[1].(types.String)
		return addedTexts(len(first) + len(second))
	case types.Bytes:
		second, _ := values[1].(types.Bytes)
		return addedTexts(len(first) + len(second))
	case traits.Lister:
		second, ok := values[1].(traits.Lister)
		if !ok {
			return Load{}
		}
		total := float64(second.Size().(types.Int))
		if _, inPlace := first.(traits.MutableLister); !inPlace {
			total += float64(first.Size().(types.Int))
		}
		return Load{30 + 50*total, 16 * total}
	default:
		return Load{}
	}
}

func addedTexts(length int) Load {
	return Load{40 + float64(length)/4, float64(length)}
}

// comparing is nothing where one value has no others in it.
func comparing(_ *account, _ *call, values []ref.Val) Load {
	if !isContainer(values[0]) || !isContainer(values[1]) {
		return Load{}
	}
	of := Call{First: Operand{Deep: counted(values[0])}, Second: Operand{Deep: noLimit}}
	if of.First.Deep > BytesPerValue {
		of.Second.Deep = counted(values[1])
	}
	return equalling.load(&of)
}
