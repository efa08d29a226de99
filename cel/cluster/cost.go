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

// assumedSize is the assumed number of elements of a list, map or text of a cluster in estimates of costs. The API limits few
// of these sizes. So an estimate is the cost on a typical large cluster, not an upper bound.
const assumedSize = 32

// costPerScore is the cost of making the map of one score and reading it.
const costPerScore = common.MapCreateBaseCost + 1

// costs has the costs of Kubernetes' functions and of the functions that this package declares.
type costs struct {
	library.CostEstimator
}

func newCosts() *costs {
	return &costs{library.CostEstimator{SizeEstimator: assumedSizes{}}}
}

// CallCost returns the cost of a call after it was made.
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

// CallLoad returns the time and memory of a call. Each call of scores() and sets() parses the annotation and makes all scores
// again, and sets() also searches all scores.
func (c *costs) CallLoad(function string, args []ref.Val) (meter.Load, bool) {
	switch function {
	case scoresFunction, setsFunction:
		size := scoresSize(scoresRead(function, args))
		return meter.Load{Nanoseconds: 300 + 15*size, Bytes: 4 * size}, true
	case parseJSONFunction:
		text, _ := args[0].(types.String)
		size := float64(len(text))
		// The worst texts have empty maps: {} and a comma make a map from only three bytes.
		return meter.Load{Nanoseconds: 200 + 20*size, Bytes: 24 * size}, true
	default:
		return meter.Load{}, false
	}
}

// EstimateCallCost returns bounds of the cost of a call.
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

// textSize returns the size of the only argument of a function, in either style of call: text.f() or f(text).
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

// assumedSizes estimates the sizes that the CEL checker can't derive.
type assumedSizes struct{}

// EstimateSize returns nil for scalars, because CEL has their sizes. All other sizes get a bound, because CEL would estimate
// infinite costs for comparing values of unknown size.
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

// construction returns the cost of creating all maps and lists in a parsed text.
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
