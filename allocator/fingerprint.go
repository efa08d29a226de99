// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// fingerprint stands for some content. Content is untrusted, so it is a cryptographic
// one.
type fingerprint [sha256.Size]byte

func fingerprintOf(content []byte) fingerprint { return sha256.Sum256(content) }

// contentMemory is memory for content until it has a fingerprint.
var contentMemory = sync.Pool{New: func() any { return new([]byte) }}

// appendPart appends such that different sequences of parts are different.
func appendPart[T []byte | string](to []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
}

// message is a protocol buffer.
type message interface {
	Size() int
	MarshalToSizedBuffer(to []byte) (int, error)
}

// appendMessage appends such that different sequences of messages are different. It is false
// if the message can't be written.
func appendMessage(to []byte, m message) ([]byte, bool) {
	size := m.Size()
	to = binary.BigEndian.AppendUint64(to, uint64(size))
	to = slices.Grow(to, size)[:len(to)+size]
	_, err := m.MarshalToSizedBuffer(to[len(to)-size:])
	return to, err == nil
}
