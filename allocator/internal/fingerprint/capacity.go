// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fingerprint

import (
	"encoding/binary"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Objects are the informers', and others read them at the same time: nobody may write to
// them. A quantity does that by itself. It keeps its text once it was asked for, and turns
// into decimal form once it was compared with one that is. A copy does it to itself; that is
// why no method is called on a quantity behind a pointer, and why the protocol buffer of a
// device isn't made: what it does with the quantities of a request policy is just that.

// AppendCapacities appends such that different capacities are different.
func AppendCapacities(to []byte, all map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(len(all)))
	// More than these on the stack are few.
	var memory [8]resourceapi.QualifiedName
	names := memory[:0]
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		capacity := all[name]
		to = appendText(to, string(name))
		to = appendQuantity(to, &capacity.Value)
		to = appendPolicy(to, capacity.RequestPolicy)
	}
	return to
}

func appendPolicy(to []byte, policy *resourceapi.CapacityRequestPolicy) []byte {
	if policy == nil {
		return append(to, absent)
	}
	to = appendQuantity(append(to, present), policy.Default)
	to = binary.BigEndian.AppendUint64(to, uint64(len(policy.ValidValues)))
	for i := range policy.ValidValues {
		to = appendQuantity(to, &policy.ValidValues[i])
	}
	if policy.ValidRange == nil {
		return append(to, absent)
	}
	to = appendQuantity(append(to, present), policy.ValidRange.Min)
	to = appendQuantity(to, policy.ValidRange.Max)
	return appendQuantity(to, policy.ValidRange.Step)
}

// appendQuantity writes a copy's text.
func appendQuantity(to []byte, quantity *resource.Quantity) []byte {
	if quantity == nil {
		return append(to, absent)
	}
	amount := *quantity
	return appendText(append(to, present), amount.String())
}

// AppendBool tells none from false.
func AppendBool(to []byte, value *bool) []byte {
	switch {
	case value == nil:
		return append(to, absent)
	case *value:
		return append(to, present, 1)
	default:
		return append(to, present, 0)
	}
}

// absent or present is what stands before something that may be missing.
const (
	absent byte = iota
	present
)

// appendText is AppendPart of a text.
func appendText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(text))), text...)
}
