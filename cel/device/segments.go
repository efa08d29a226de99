// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// Segments is a call of the function segments. If the expression is true for a set, the call is true. The list of the call is the
// set or a filter of the set. Segments is safe for concurrent use.
type Segments struct {
	// Size is the number of devices in a segment, at least one.
	Size int64

	// filters are the conditions under which a device is in the list. key is the key of a device in the list.
	filters []memberPart
	key     memberPart
}

// memberPart is a part of an expression that reads a single device.
type memberPart struct {
	*Part
	variable string
}

// SegmentMember describes a device with regard to the list of a call of the function segments.
type SegmentMember struct {
	// InList means that the device is in the list.
	InList bool
	// Key is equal for two devices of the list if their keys are equal. Key is not readable text.
	Key string
}

// Segments returns the calls of the function segments that the expression joins with "&&". It leaves out calls with a computed
// size, and calls with a key or filter that depends on the whole set. Segments compiles parts of the expression.
func (e *Expression) Segments() (found []Segments) {
	for _, conjunct := range tree.Conjuncts(e.AST().Expr()) {
		if !tree.IsCall(conjunct, library.Segments) {
			continue
		}
		args := conjunct.AsCall().Args()
		size, isLiteral := tree.Literal[types.Int](args[1])
		if !isLiteral || size < 1 {
			continue
		}
		s := Segments{Size: int64(size)}
		if e.readSegments(&s, args[0]) {
			found = append(found, s)
		}
	}
	return found
}

// readSegments reads the key and the filters from list.filter(x, keeps).map(x, key). It returns false for any other list.
func (e *Expression) readSegments(s *Segments, list ast.Expr) bool {
	for isMap := true; !tree.IsIdent(list, e.set); isMap = false {
		if list.Kind() != ast.ComprehensionKind {
			return false
		}
		c := list.AsComprehension()
		keeps, element, ok := tree.CollectionOf(c)
		if !ok || c.HasIterVar2() || isMap != (keeps == nil) || !isMap && !tree.IsIdent(element, c.IterVar()) {
			return false
		}
		if isMap {
			s.key, ok = e.memberPart(element, c.IterVar())
		} else {
			var keep memberPart
			keep, ok = e.memberPart(keeps, c.IterVar())
			s.filters = append(s.filters, keep)
		}
		if !ok {
			return false
		}
		list = c.IterRange()
	}
	return s.key.Part != nil
}

// memberPart compiles a part. ok is false if the part reads the set, and not only the device in the variable.
func (e *Expression) memberPart(of ast.Expr, variable string) (p memberPart, ok bool) {
	readsSet := false
	tree.Visit(of, func(part ast.Expr, hidden tree.Names) {
		readsSet = readsSet || tree.IsIdent(part, e.set) && e.set != variable && !hidden.Has(e.set)
	})
	if readsSet {
		return memberPart{}, false
	}
	part, err := e.Part(e.AST(), of)
	return memberPart{part, variable}, err == nil
}

// Members returns for each of the devices whether it is in the list, and its key. It charges the budget. If a filter or the key
// fails for a device, Members returns the error. The expression fails or is false then for all sets with the device.
func (s *Segments) Members(ctx context.Context, devices []*Device, budget *cel.Budget) ([]SegmentMember, error) {
	members := make([]SegmentMember, len(devices))
	for i, d := range devices {
		inList, err := s.isInList(ctx, d, budget)
		if err != nil {
			return nil, err
		}
		if !inList {
			continue
		}
		value, err := s.key.of(ctx, d, budget)
		if err != nil {
			return nil, err
		}
		key, err := library.KeyOf(value)
		if err != nil {
			return nil, err
		}
		members[i] = SegmentMember{InList: true, Key: key}
	}
	return members, nil
}

func (s *Segments) isInList(ctx context.Context, d *Device, budget *cel.Budget) (bool, error) {
	// The last filter in the text comes first.
	for i := len(s.filters) - 1; i >= 0; i-- {
		keeps, err := s.filters[i].of(ctx, d, budget)
		if err != nil {
			return false, err
		}
		switch keeps {
		case types.True:
		case types.False:
			return false, nil
		default:
			return false, fmt.Errorf("filter has a condition of type %s: use a bool", keeps.Type().TypeName())
		}
	}
	return true, nil
}

// of returns the value for a device.
func (p memberPart) of(ctx context.Context, d *Device, budget *cel.Budget) (ref.Val, error) {
	value, err := p.Value(ctx, budget, Variable{Name: p.variable, Device: d})
	if err != nil {
		return nil, err
	}
	if failure, ok := value.(*types.Err); ok {
		return nil, failure
	}
	return value, nil
}
