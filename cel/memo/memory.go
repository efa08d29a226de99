// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import "sync"

// largestShare limits the size of a value to a fourth of the memory.
const largestShare = 4

// Memory holds the entries of several memos. It is safe for concurrent use.
type Memory struct {
	mutex       sync.Mutex
	limit, used int64
	// ends is the head of the ring of elements. Its next is the newest element, its previous the oldest.
	ends element
	// parts holds the parts of all values, by identity.
	parts map[any]*heldPart
}

// Size is the size of a value.
type Size struct {
	// Bytes is the size of the value alone. Parts are the parts it shares with other values.
	Bytes int
	Parts []Part
}

// Part is memory that several values point to. It counts once.
type Part struct {
	// Of identifies the part. It is usually a pointer to it.
	Of    any
	Bytes int
}

type heldPart struct {
	bytes int64
	// holders is the number of values that point to the part.
	holders int
}

// partBytes is the approximate overhead per part.
const partBytes = 96

// New returns an empty Memory with a limit in bytes.
func New(limit int64) *Memory {
	m := &Memory{limit: max(limit, 0)}
	m.ends.next, m.ends.previous = &m.ends, &m.ends
	return m
}

// Limit returns the maximum number of bytes.
func (m *Memory) Limit() int64 { return m.limit }

// Used returns the number of bytes in use.
func (m *Memory) Used() int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.used
}

// Forget drops all entries.
func (m *Memory) Forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for m.ends.next != &m.ends {
		m.drop(m.ends.next)
	}
}

// element is a position in the order of use. The mutex of the memory guards all fields.
type element struct {
	// next is older, previous newer. Both are nil if the element was dropped.
	next, previous *element
	bytes          int64
	parts          []Part
	owner          owner
}

// owner is notified when its element is dropped. The memory is locked then.
type owner interface{ dropped() }

func (e *element) isStored() bool { return e.next != nil }

// insert makes an element the newest.
func (m *Memory) insert(e *element) {
	e.previous, e.next = &m.ends, m.ends.next
	e.previous.next, e.next.previous = e, e
}

func (e *element) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
	e.previous, e.next = nil, nil
}

// use makes an element the newest, unless it was dropped.
func (m *Memory) use(e *element) {
	if m.ends.next == e || !e.isStored() {
		return
	}
	e.unlink()
	m.insert(e)
}

// charge adds bytes and parts to an element. It may then drop this element or others.
func (m *Memory) charge(e *element, bytes int, parts []Part) {
	if !e.isStored() {
		return
	}
	e.bytes += int64(bytes)
	m.used += int64(bytes)
	total := e.bytes
	for _, part := range parts {
		total += int64(part.Bytes)
		m.hold(part)
	}
	e.parts = append(e.parts, parts...)
	if total > m.limit/largestShare {
		m.drop(e)
	}
	for m.used > m.limit {
		m.drop(m.ends.previous)
	}
}

func (m *Memory) drop(e *element) {
	e.unlink()
	m.used -= e.bytes
	for _, part := range e.parts {
		m.release(part)
	}
	e.bytes, e.parts = 0, nil
	e.owner.dropped()
}

// hold adds a holder of a part. It counts the part's size only for the first holder.
func (m *Memory) hold(part Part) {
	held := m.parts[part.Of]
	if held == nil {
		if m.parts == nil {
			m.parts = make(map[any]*heldPart)
		}
		held = &heldPart{bytes: int64(part.Bytes) + partBytes}
		m.parts[part.Of] = held
		m.used += held.bytes
	}
	held.holders++
}

func (m *Memory) release(part Part) {
	held := m.parts[part.Of]
	if held.holders--; held.holders == 0 {
		m.used -= held.bytes
		delete(m.parts, part.Of)
	}
}
