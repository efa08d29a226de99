// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fingerprint stands for content by a number that nothing else has: what is found out
// about devices and claims is kept under fingerprints of what it depends on.
//
// Content is written by appending: different sequences of parts are different bytes, and
// nothing is written to the objects, which are the informers'. [Of] the bytes is the
// fingerprint.
package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sum is a fingerprint. Content is untrusted, so it is a cryptographic one.
type Sum [sha256.Size]byte

// Of is the fingerprint of some content.
func Of(content []byte) Sum { return sha256.Sum256(content) }

// Memory is memory for content until it has a fingerprint.
var Memory = sync.Pool{New: func() any { return new([]byte) }}

// AppendPart appends such that different sequences of parts are different.
func AppendPart[T []byte | string](to []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
}

// Message is a protocol buffer.
type Message interface {
	Size() int
	MarshalToSizedBuffer(to []byte) (int, error)
}

// AppendMessage appends such that different sequences of messages are different. It is false
// if the message can't be written.
func AppendMessage(to []byte, m Message) ([]byte, bool) {
	size := m.Size()
	to = binary.BigEndian.AppendUint64(to, uint64(size))
	to = slices.Grow(to, size)[:len(to)+size]
	_, err := m.MarshalToSizedBuffer(to[len(to)-size:])
	return to, err == nil
}

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
