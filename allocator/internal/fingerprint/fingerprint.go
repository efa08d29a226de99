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
