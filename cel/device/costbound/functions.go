// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound

// function says how a function is charged. If cost is nil, a call costs one unit. If size is nil, the result is at most as
// large as other values of its type.
type function struct {
	cost, size bound
	// keeps means that the result is at most as large as an operand.
	keeps bool
	// operands is the minimum number of operands that cost and size need.
	operands int
}

// functions has the functions with bounds. Other functions have no bound: they parse or format long texts, or they need an API
// server.
var functions = map[string]function{
	// Operators.
	"_&&_":                   {cost: nothing},
	"_||_":                   {cost: nothing},
	"_?_:_":                  {cost: nothing, size: larger, keeps: true, operands: 3},
	"_==_":                   {cost: comparing, operands: 2},
	"_!=_":                   {cost: comparing, operands: 2},
	"_<_":                    {cost: comparing, operands: 2},
	"_<=_":                   {cost: comparing, operands: 2},
	"_>_":                    {cost: comparing, operands: 2},
	"_>=_":                   {cost: comparing, operands: 2},
	"_+_":                    {cost: readingBoth, size: both, operands: 2},
	"@in":                    {cost: elementsOfArg(1), operands: 2},
	"_in_":                   {cost: elementsOfArg(1), operands: 2},
	"in":                     {cost: elementsOfArg(1), operands: 2},
	"_[_]":                   {cost: looking, size: entry, keeps: true, operands: 2},
	"_[?_]":                  {cost: looking, operands: 2},
	"_?._":                   {cost: looking, operands: 2},
	"!_":                     {},
	"-_":                     {size: one},
	"_-_":                    {size: one},
	"_*_":                    {size: one},
	"_/_":                    {size: one},
	"_%_":                    {size: one},
	"@not_strictly_false":    {},
	"__not_strictly_false__": {},

	// Conversions.
	"bool": {}, "double": {}, "int": {}, "uint": {}, "duration": {}, "timestamp": {}, "type": {}, "size": {},
	"dyn":    {size: sizeOfArg(0), keeps: true, operands: 1},
	"bytes":  {cost: reading(0), size: sizeOfArg(0), operands: 1},
	"string": {cost: reading(0), size: converted, operands: 1},

	// Strings.
	"charAt":        {},
	"startsWith":    {cost: reading(1), operands: 2},
	"endsWith":      {cost: reading(1), operands: 2},
	"contains":      {cost: searching, operands: 2},
	"matches":       {cost: matching, operands: 2},
	"find":          {cost: matching, size: sizeOfArg(0), keeps: true, operands: 2},
	"findAll":       {cost: matching, size: oneMore, operands: 2},
	"lowerAscii":    {cost: reading(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"upperAscii":    {cost: reading(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"substring":     {cost: reading(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"trim":          {cost: reading(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"split":         {cost: readingTwice, size: oneMore, operands: 2},
	"replace":       {cost: readingTwice, size: replaced, operands: 3},
	"join":          {cost: joining, size: joined, operands: 1},
	"strings.quote": {cost: reading(0), size: quoted, operands: 1},

	// Lists, sets and maps.
	"sum":                   {cost: traversing, size: one, operands: 1},
	"min":                   {cost: traversing, operands: 1},
	"max":                   {cost: traversing, operands: 1},
	"isSorted":              {cost: traversing, operands: 1},
	"indexOf":               {cost: traversing, operands: 1},
	"lastIndexOf":           {cost: traversing, operands: 1},
	"includes":              {cost: traversing, operands: 1},
	"distinct":              {cost: comparingAll(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"sort":                  {cost: comparingAll(0), size: sizeOfArg(0), keeps: true, operands: 1},
	"@sortByAssociatedKeys": {cost: comparingAll(1), size: sizeOfArg(0), keeps: true, operands: 2},
	"reverse":               {cost: copying(sizeOfArg(0)), size: sizeOfArg(0), keeps: true, operands: 1},
	"slice":                 {cost: copying(sizeOfArg(0)), size: sizeOfArg(0), keeps: true, operands: 1},
	"flatten":               {cost: flattening, size: flattened, operands: 1},
	"lists.range":           {cost: copying(literally), size: literally, operands: 1},
	"first":                 {},
	"last":                  {},
	"sets.contains":         {cost: pairs, operands: 2},
	"sets.equivalent":       {cost: pairs, operands: 2},
	"sets.intersects":       {cost: pairs, operands: 2},
	"cel.@mapInsert":        {size: inserted, operands: 2},

	// Numbers.
	"math.@max": {size: one}, "math.@min": {size: one}, "math.abs": {size: one}, "math.sign": {size: one}, "math.sqrt": {size: one},
	"math.ceil": {size: one}, "math.floor": {size: one}, "math.round": {size: one}, "math.trunc": {size: one},
	"math.isFinite": {}, "math.isInf": {}, "math.isNaN": {},
	"math.bitAnd": {size: one}, "math.bitNot": {size: one}, "math.bitOr": {size: one}, "math.bitShiftLeft": {size: one},
	"math.bitShiftRight": {size: one}, "math.bitXor": {size: one},

	// Relations of devices, from package library. Their loads bound their work.
	"@connected": {operands: 1}, "@clique": {operands: 1}, "@ring": {operands: 1}, "@path": {operands: 1},
	"@paired": {operands: 2}, "@box": {operands: 2}, "@segments": {operands: 2}, "sameOrIncludes": {operands: 2},

	// Optional values.
	"hasValue": {}, "value": {}, "or": {}, "orValue": {},
	"optional.of": {}, "optional.none": {}, "optional.ofNonZeroValue": {},
	"optional.unwrap": {size: sizeOfArg(0), keeps: true, operands: 1},
	"unwrapOpt":       {size: sizeOfArg(0), keeps: true, operands: 1},

	// Times.
	"getDate": {}, "getDayOfMonth": {}, "getDayOfWeek": {}, "getDayOfYear": {}, "getFullYear": {}, "getMonth": {},
	"getHours": {}, "getMinutes": {}, "getSeconds": {}, "getMilliseconds": {},

	// Quantities and versions.
	"quantity":   {cost: reading(0), operands: 1},
	"isQuantity": {cost: reading(0), operands: 1},
	"semver":     {cost: reading(0), operands: 1},
	"isSemver":   {cost: reading(0), operands: 1},
	"add":        {}, "sub": {}, "sign": {}, "asInteger": {}, "isInteger": {}, "asApproximateFloat": {},
	"isGreaterThan": {}, "isLessThan": {}, "compareTo": {}, "major": {}, "minor": {}, "patch": {},

	// Formats and URLs.
	"format":       {cost: reading(0), size: formatted, operands: 2},
	"validate":     {cost: validating, operands: 2},
	"format.named": {}, "format.byte": {}, "format.date": {}, "format.datetime": {}, "format.uri": {}, "format.uuid": {},
	"format.dns1035Label": {}, "format.dns1035LabelPrefix": {}, "format.dns1123Label": {}, "format.dns1123LabelPrefix": {},
	"format.dns1123Subdomain": {}, "format.dns1123SubdomainPrefix": {}, "format.labelValue": {}, "format.qualifiedName": {},
	"url": {cost: reading(0), operands: 1}, "isURL": {cost: reading(0), operands: 1},
	"getScheme": {}, "getHost": {}, "getHostname": {}, "getPort": {}, "getEscapedPath": {}, "getQuery": {},

	// Addresses.
	"ip":             {cost: reading(0), operands: 1},
	"isIP":           {cost: reading(0), operands: 1},
	"cidr":           {cost: reading(0), operands: 1},
	"isCIDR":         {cost: reading(0), operands: 1},
	"ip.isCanonical": {cost: readingTwice, operands: 1},
	"containsIP":     {cost: comparingNetworks, operands: 2},
	"containsCIDR":   {cost: comparingNetworks, operands: 2},
	"masked":         {}, "prefixLength": {}, "family": {}, "isUnspecified": {}, "isLoopback": {},
	"isLinkLocalMulticast": {}, "isLinkLocalUnicast": {}, "isGlobalUnicast": {},
}

// extractors has the functions that return a part of an operand with the type that the part has in the operand.
var extractors = map[string]bool{
	"_[_]": true, "_[?_]": true, "_?._": true, "first": true, "last": true, "value": true, "min": true, "max": true, "sum": true,
}

// one is the size of a number or a time.
func one(*called) float64 { return 1 }

// looking is the cost of looking up an element by index or key.
func looking(*called) float64 { return indexCost }

func entry(c *called) float64 { return c.sizeOfEntry(c.expr) }

// literally is the value of the first operand if it is an int literal.
func literally(c *called) float64 { return c.number(0, 0) }
