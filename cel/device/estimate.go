// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"

	setlib "github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/meter"
)

// EstimateCost returns an upper estimate of the cost of an evaluation on a set with this number of devices, in CEL cost units.
// It assumes as many and as long attributes as the API allows, and computed values no longer than an attribute. math.MaxUint64
// means that there is no bound. The error is a [*cel.Error]. If the estimate fails, the expression can still be evaluated.
func (e *Expression) EstimateCost(devices int) (uint64, error) {
	of := sizes{devices: uint64(max(0, devices))}
	estimate, err := e.program.EstimateCost(estimator{&library.CostEstimator{SizeEstimator: of}, of})
	return estimate.Max, err
}

// estimator adds the functions of package library to Kubernetes' estimator. These functions are charged by their run time.
type estimator struct {
	*library.CostEstimator
	sizes sizes
}

// EstimateCallCost implements [checker.CostEstimator].
func (e estimator) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch function {
	case setlib.Connected, setlib.Clique, setlib.Ring, setlib.Path, setlib.Paired, setlib.Box, setlib.Segments:
		n := float64(e.sizes.devices)
		list := meter.Operand{Size: n, Deep: 1 + n + n*max(n, float64(attributeSize))}
		most := meter.LoadOf(function, meter.Call{First: list, Second: list, Third: list})
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + uint64(most.Units())}}
	}
	return e.CostEstimator.EstimateCallCost(function, overload, target, args)
}

// sizes estimates the size of a value by its path, such as devices[n].attributes, for a set of devices.
type sizes struct {
	devices uint64
}

const (
	itemsOf  = "@items"
	keysOf   = "@keys"
	valuesOf = "@values"
)

var attributeSize = uint64(attributeType.MaxElements)

// EstimateSize implements [checker.CostEstimator]. CEL calls it for values of unknown size.
func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 || !IsSet(path[0]) {
		return s.computed(element.Type())
	}
	if len(path) == 1 {
		return upTo(s.devices, s.devices)
	}
	t := deviceType
	if path[0] == nodesVariable {
		t = nodeType
	}
	// path[1] is the element of the list, so the field names begin at path[2].
	for _, name := range path[2:] {
		if t = partType(t, name); t == nil {
			return s.computed(element.Type())
		}
	}
	return upTo(0, uint64(t.MaxElements))
}

// EstimateCallCost returns nil, so that Kubernetes' estimator estimates functions.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// computed returns the size of a value that is not read directly from a device.
func (s sizes) computed(t *types.Type) *checker.SizeEstimate {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind, types.NullTypeKind, types.TypeKind:
		return upTo(1, 1)
	case types.ListKind, types.MapKind:
		return upTo(0, max(s.devices, attributeSize))
	default:
		return upTo(0, attributeSize)
	}
}

func upTo(least, most uint64) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: least, Max: most}
}

// itemType is the type of the elements of a list attribute.
var itemType = sized(apiservercel.DynType, resourceapi.DeviceAttributeMaxValueLength)

// partType returns the type of a struct field, map value or list element of t. It returns nil if t has no such part.
func partType(t *apiservercel.DeclType, name string) *apiservercel.DeclType {
	switch name {
	case keysOf:
		return t.KeyType
	case itemsOf, valuesOf:
		if t == attributeType {
			return itemType
		}
		return t.ElemType
	}
	if field, ok := t.Fields[name]; ok {
		return field.Type
	}
	// t is a map or a list.
	return t.ElemType
}
