// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/binary"
	"weak"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
)

// Each key has everything that what is kept under it depends on:
//
//	what                                  key
//	contents of slices                    the slice, by identity; what is read of it
//	devices as claims see them            their content but for names, for which devices are of
//	                                      one pool, and for attributes that the claims don't
//	                                      read ([view.View])
//	verdicts of selectors on devices      view, texts of the selectors
//	what an expression says               its text and those of its variables, the environment,
//	                                      shape of the set
//	tables of a CEL constraint            view, expression, shape of the set
//	verdicts of a CEL constraint on sets  view, expression, positions of the devices
//	symmetry classes ([symmetry.find])    view, attributes that are read
//	sets of a shape                       view, claim for the shape; the node's devices, unless
//	                                      all is said by what claims read
//	devices that exclude each other       the node's devices
//	answers to claims                     view, claims, what is in use ([keptAnswer])
//
// Keys hold nothing that is larger than they are: texts stand in them as fingerprints,
// views as their numbers, slices as weak pointers. So what is dropped from the cache is
// dropped, though there be keys with it.

// expressionKey is an expression as it was compiled.
type expressionKey struct {
	environment *device.Environment
	text        fingerprint.Sum
	// isGoal: it is a preference, of type int.
	isGoal bool
}

func newExpressionKey(environment *device.Environment, expression string, variables []v1alpha1.Variable, isGoal bool) expressionKey {
	text := fingerprint.AppendPart(nil, expression)
	for _, v := range variables {
		text = fingerprint.AppendPart(fingerprint.AppendPart(text, v.Name), v.Expression)
	}
	return expressionKey{environment, fingerprint.Of(text), isGoal}
}

// analysisKey is everything that an analysis depends on.
type analysisKey struct {
	expression expressionKey
	shape      setShape
}

// setShape is what is known of all sets that an expression is asked about.
type setShape struct {
	size int
	// ascending: they are the devices of one request, which are in the order of the candidates.
	ascending bool
}

// contentKey is what the content of a slice depends on.
type contentKey struct {
	slice weak.Pointer[resourceapi.ResourceSlice]
	read  view.ReadSet
}

// viewKey is everything that a view depends on.
type viewKey struct {
	content fingerprint.Sum
	read    view.ReadSet
}

// selectionKey is everything that the verdicts of selectors depend on.
type selectionKey struct {
	view      view.Number
	compiler  *dracel.Cache
	selectors fingerprint.Sum
}

// selectionKeyOf is false if one of the selectors is none.
func (s *search) selectionKeyOf(r *request) (key selectionKey, ok bool) {
	memory := fingerprint.Memory.Get().(*[]byte)
	defer fingerprint.Memory.Put(memory)
	content := (*memory)[:0]
	for _, selectors := range [][]resourceapi.DeviceSelector{r.Class.Spec.Selectors, r.Spec.Selectors} {
		for _, selector := range selectors {
			if selector.CEL == nil {
				return selectionKey{}, false
			}
			content = fingerprint.AppendPart(content, selector.CEL.Expression)
		}
	}
	*memory = content
	return selectionKey{s.view().Number, s.allocator.selectors, fingerprint.Of(content)}, true
}

// tablesKey is everything that tables depend on.
type tablesKey struct {
	view view.Number
	analysisKey
}

// verdictsKey is everything that the verdicts of an expression on sets depend on, beside the
// positions of the devices in the order of the set.
type verdictsKey struct {
	view       view.Number
	expression expressionKey
}

// symmetryKey is everything that the symmetry classes of the devices in a view depend on.
type symmetryKey struct {
	view view.Number
	read view.ReadSet
}

// roomKey is everything that the sets of a shape depend on.
type roomKey struct {
	view        view.Number
	features    structured.Features
	environment *device.Environment
	claim       fingerprint.Sum
	// devices are nil for plain inventories.
	devices weak.Pointer[inventory.Inventory]
}

func (s *search) roomKey(claim fingerprint.Sum) roomKey {
	key := roomKey{view: s.view().Number, features: s.allocator.features, environment: s.allocator.environment, claim: claim}
	if !s.inventory.IsPlain {
		key.devices = weak.Make(s.inventory)
	}
	return key
}

// answerKey is everything that an answer depends on, for plain inventories.
type answerKey struct {
	view        view.Number
	features    structured.Features
	environment *device.Environment
	claims      fingerprint.Sum
	costBudget  uint64
	stepBudget  int64
	preferences goalLimits
	// prefers tells that preferences are read.
	prefers bool
	reasons bool
	// inUse has a bit for each device.
	inUse string
}

func (a *Allocator) answerKeyOf(v *view.View, claims fingerprint.Sum, allocated bitset.Set) answerKey {
	var memory [32]byte
	inUse := memory[:0]
	for _, word := range allocated {
		inUse = binary.LittleEndian.AppendUint64(inUse, word)
	}
	return answerKey{
		view: v.Number, features: a.features, environment: a.environment,
		claims: claims, costBudget: a.costBudget, stepBudget: a.stepBudget, preferences: goalLimits{a.preferenceCost, a.preferenceSteps}, prefers: a.preferences, reasons: a.reasons,
		inUse: string(inUse),
	}
}
