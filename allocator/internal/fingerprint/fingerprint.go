// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fingerprint identifies content by hashes. Results about devices and claims are cached under fingerprints of everything
// that they depend on.
//
// Content is encoded by appending to a slice, such that different sequences of parts give different bytes. The objects belong to
// informers and are not modified. [Of] returns the fingerprint of the bytes.
package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sum is a fingerprint. It is a cryptographic hash, because content is untrusted.
type Sum [sha256.Size]byte

// Of returns the fingerprint of some content.
func Of(content []byte) Sum { return sha256.Sum256(content) }

// Memory is a pool of buffers for content.
var Memory = sync.Pool{New: func() any { return new([]byte) }}

// AppendPart appends a part such that different sequences of parts give different bytes.
func AppendPart[T []byte | string](to []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
}

// Message is a protocol buffer.
type Message interface {
	Size() int
	MarshalToSizedBuffer(to []byte) (int, error)
}

// AppendMessage appends a message such that different sequences of messages give different bytes. It returns false if the message
// can't be encoded.
func AppendMessage(to []byte, m Message) ([]byte, bool) {
	size := m.Size()
	to = binary.BigEndian.AppendUint64(to, uint64(size))
	to = slices.Grow(to, size)[:len(to)+size]
	_, err := m.MarshalToSizedBuffer(to[len(to)-size:])
	return to, err == nil
}

// Objects belong to informers and others read them concurrently, so they must not be modified. A quantity modifies itself: it
// caches its text, and changes to decimal form when compared with a decimal. So methods are only called on copies of quantities.
// The protocol buffer of a device is not used, because encoding calls methods on the quantities of a request policy.

// AppendCapacities appends capacities such that different capacities give different bytes.
func AppendCapacities(to []byte, all map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(len(all)))
	// Devices rarely have more capacities than fit on the stack.
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

// appendQuantity appends the text of a copy.
func appendQuantity(to []byte, quantity *resource.Quantity) []byte {
	if quantity == nil {
		return append(to, absent)
	}
	amount := *quantity
	return appendText(append(to, present), amount.String())
}

// AppendBool appends a bool such that nil and false differ.
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

// Each optional part begins with absent or present.
const (
	absent byte = iota
	present
)

// appendText is AppendPart for strings.
func appendText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(text))), text...)
}
