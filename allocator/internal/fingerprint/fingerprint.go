// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fingerprint identifies content by hashes. A cache key is the fingerprint of everything that the result depends on.
//
// Content is encoded by appending parts to a slice. Different sequences of parts have different encodings. The package does not
// modify the encoded objects, because they belong to informers. [Of] returns the fingerprint of the encoded bytes.
package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sum is a fingerprint. It is a cryptographic hash, because an attacker may choose the content.
type Sum [sha256.Size]byte

// Of returns the fingerprint of encoded content.
func Of(content []byte) Sum { return sha256.Sum256(content) }

// Memory is a pool of buffers for encoded content.
var Memory = sync.Pool{New: func() any { return new([]byte) }}

// AppendPart appends a part with its length. So different sequences of parts have different encodings.
func AppendPart[T []byte | string](to []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
}

// Message is a protocol buffer.
type Message interface {
	Size() int
	MarshalToSizedBuffer(to []byte) (int, error)
}

// AppendMessage appends a message with its length. So different sequences of messages have different encodings. It returns
// false if the message can't be encoded.
func AppendMessage(to []byte, m Message) ([]byte, bool) {
	size := m.Size()
	to = binary.BigEndian.AppendUint64(to, uint64(size))
	to = slices.Grow(to, size)[:len(to)+size]
	_, err := m.MarshalToSizedBuffer(to[len(to)-size:])
	return to, err == nil
}

// The objects belong to informers, and other goroutines read them, so this package must not modify them. A quantity modifies
// itself: it caches its text, and it becomes a decimal when compared with a decimal. So methods are called only on copies of
// quantities. The protocol buffer of a device is not used, because encoding it calls methods on the quantities of request
// policies.

// AppendCapacities appends capacities. Different capacities have different encodings.
func AppendCapacities(to []byte, all map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(len(all)))
	// For most devices this array on the stack is large enough for the names.
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

// appendQuantity appends the text of a quantity. It formats a copy.
func appendQuantity(to []byte, quantity *resource.Quantity) []byte {
	if quantity == nil {
		return append(to, absent)
	}
	amount := *quantity
	return appendText(append(to, present), amount.String())
}

// AppendBool appends a bool. nil and false have different encodings.
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

// Each optional part begins with one of these bytes.
const (
	absent byte = iota
	present
)

// appendText is AppendPart for a string.
func appendText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(text))), text...)
}
