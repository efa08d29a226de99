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

// EstimateCost returns what an evaluation on a set of that many devices may cost, in CEL
// cost units, if the devices have as many attributes and as long ones as the API allows.
// What an expression computes from attributes is taken to be as long as one of them.
// math.MaxUint64 means that there is no bound. The error is a [*cel.Error]; the
// expression can be evaluated all the same.
func (e *Expression) EstimateCost(devices int) (uint64, error) {
	of := sizes{devices: uint64(max(0, devices))}
	estimate, err := e.program.EstimateCost(estimator{&library.CostEstimator{SizeEstimator: of}, of})
	return estimate.Max, err
}

// estimator knows what Kubernetes does not: the functions over sets, which are charged for the time
// that they take.
type estimator struct {
	*library.CostEstimator
	sizes sizes
}

// EstimateCallCost is asked for calls.
func (e estimator) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch function {
	case setlib.Connected, setlib.Clique, setlib.Ring, setlib.Path, setlib.Paired, setlib.Box:
		n := float64(e.sizes.devices)
		list := meter.Operand{Size: n, Deep: 1 + n + n*max(n, float64(attributeSize))}
		most := meter.LoadOf(function, meter.Call{First: list, Second: list, Third: list})
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + uint64(most.Units())}}
	}
	return e.CostEstimator.EstimateCallCost(function, overload, target, args)
}

// sizes are those of a set of devices, by the path of what is looked at.
type sizes struct {
	devices uint64
}

const (
	itemsOf  = "@items"
	keysOf   = "@keys"
	valuesOf = "@values"
)

var attributeSize = uint64(attributeType.MaxElements)

// EstimateSize is asked for what CEL does not know the size of.
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
	// The second element says that an element of the list is meant.
	for _, name := range path[2:] {
		if t = partType(t, name); t == nil {
			return s.computed(element.Type())
		}
	}
	return upTo(0, uint64(t.MaxElements))
}

// EstimateCallCost leaves functions to Kubernetes.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// computed is for values of which it is not known where they come from.
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

// itemType is that of the elements of an attribute that is a list.
var itemType = sized(apiservercel.DynType, resourceapi.DeviceAttributeMaxValueLength)

// partType is the type of a part, nil if there is none.
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
	// Of a map, the value of that key.
	return t.ElemType
}
