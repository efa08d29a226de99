// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celset/celset/cel/meter"
)

// assumedSize is how many elements a list, a map or a text of a cluster has when
// costs are estimated. The API has no limits for most of them: an estimate tells
// what an expression costs on a large cluster, not on the largest.
const assumedSize = 32

// costPerScore is that of a map and its access.
const costPerScore = common.MapCreateBaseCost + 1

// costs are those of Kubernetes, and those of the functions declared here.
type costs struct {
	library.CostEstimator
}

func newCosts() *costs {
	return &costs{library.CostEstimator{SizeEstimator: assumedSizes{}}}
}

// CallCost is what a call did cost.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch function {
	case scoresFunction:
		return cost(common.ListCreateBaseCost + costPerScore*size(result))
	case setsFunction:
		items := uint64(0)
		if object := scoresRead(function, args); object != nil {
			items = uint64(len(object.Status.Scores))
		}
		return cost(common.ListCreateBaseCost + costPerScore*items)
	case parseJSONFunction:
		return cost(traversal(size(args[0])) + construction(result))
	default:
		return c.CostEstimator.CallCost(function, overload, args, result)
	}
}

// CallLoad is what a call takes. Scores are made anew for each call, with what the
// annotation says, and sets are looked for in all of them.
func (c *costs) CallLoad(function string, args []ref.Val) (meter.Load, bool) {
	switch function {
	case scoresFunction, setsFunction:
		size := scoresSize(scoresRead(function, args))
		return meter.Load{Nanoseconds: 300 + 15*size, Bytes: 4 * size}, true
	case parseJSONFunction:
		text, _ := args[0].(types.String)
		size := float64(len(text))
		// The shortest text of a value is an empty map, with a comma.
		return meter.Load{Nanoseconds: 200 + 20*size, Bytes: 24 * size}, true
	default:
		return meter.Load{}, false
	}
}

// EstimateCallCost is what a call may cost.
func (c *costs) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	result := checker.SizeEstimate{Min: 0, Max: assumedSize}
	switch function {
	case scoresFunction, setsFunction:
		return &checker.CallEstimate{
			CostEstimate: checker.CostEstimate{Min: common.ListCreateBaseCost, Max: common.ListCreateBaseCost + costPerScore*assumedSize},
			ResultSize:   &result,
		}
	case parseJSONFunction:
		const containers = assumedSize * common.MapCreateBaseCost
		return &checker.CallEstimate{
			CostEstimate: textSize(target, args).MultiplyByCostFactor(common.StringTraversalCostFactor).Add(checker.CostEstimate{Max: containers}),
			ResultSize:   &result,
		}
	default:
		return c.CostEstimator.EstimateCallCost(function, overload, target, args)
	}
}

// textSize is the size of the only argument, before or behind the dot.
func textSize(target *checker.AstNode, args []checker.AstNode) checker.SizeEstimate {
	if target != nil {
		args = []checker.AstNode{*target}
	}
	if len(args) == 1 {
		if known := args[0].ComputedSize(); known != nil {
			return *known
		}
	}
	return checker.SizeEstimate{Min: 0, Max: assumedSize}
}

// assumedSizes is for what CEL does not know the size of.
type assumedSizes struct{}

// EstimateSize returns nil for scalars, whose size CEL knows. Nothing is without
// limit: CEL would take the cost of comparing it for infinite.
func (assumedSizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	switch element.Type().Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind:
		return nil
	case types.NullTypeKind, types.TypeKind:
		return &checker.SizeEstimate{Min: 1, Max: 1}
	default:
		return &checker.SizeEstimate{Min: 0, Max: assumedSize}
	}
}

func (assumedSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func cost(units uint64) *uint64 { return &units }

func traversal(length uint64) uint64 {
	return uint64(math.Ceil(float64(length) * common.StringTraversalCostFactor))
}

func size(value ref.Val) uint64 {
	if sizer, ok := value.(traits.Sizer); ok {
		return uint64(sizer.Size().(types.Int))
	}
	return 0
}

// construction is the cost of all maps and lists of a parsed text.
func construction(value ref.Val) uint64 {
	switch value := value.(type) {
	case *mapping[parsedObject]:
		return value.fields.construction
	case traits.Lister:
		return containers(value.Value())
	default:
		return 0
	}
}

func containers(value any) uint64 {
	var result uint64
	switch value := value.(type) {
	case map[string]any:
		result = common.MapCreateBaseCost
		for _, element := range value {
			result += containers(element)
		}
	case []any:
		result = common.ListCreateBaseCost
		for _, element := range value {
			result += containers(element)
		}
	}
	return result
}
