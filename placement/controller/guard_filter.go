// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"io"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantity is how long the text of an amount may be.
const maxQuantity = 40

// quantities are those that are decoded at once: not the number of digits is what takes
// time, but an exponent.
var quantities = regexp.MustCompile(`^[+-]?[0-9.]+([EPTGMk]|[numKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

// harmless tells whether an amount in JSON is a quantity that is decoded at once.
func harmless(amount []byte) bool {
	if string(amount) == "null" {
		return true
	}
	text := bytes.TrimSuffix(bytes.TrimPrefix(amount, []byte(`"`)), []byte(`"`))
	if len(text) > maxQuantity || !quantities.Match(text) {
		return false
	}
	_, err := resource.ParseQuantity(string(text))
	return err == nil
}

// replacement is no amount of anything, which who reads it can see.
const replacement = `"-1"`

// filter replaces amounts in JSON while it is read: values in an object that is the value
// of "capacity" or "allocatable". It looks at the text only as far as it must to find
// these, and keeps back no more than one value: events of a watch arrive when they come.
type filter struct {
	body io.ReadCloser
	// in is what was read, out what may be handed out, from a place on, and err what the
	// body ended with.
	in   [16 << 10]byte
	out  []byte
	from int
	err  error

	// quoted tells that the place is in a text, escaped that it is after a backslash.
	quoted, escaped bool
	// text is the beginning of the last text, which is a key if a colon follows it.
	text []byte
	// next tells that what follows is the value of one of the two keys.
	next bool
	// depth is that of objects and lists, counted from such a value; zero is outside.
	depth int
	// value tells that what follows is a value, and amount is the one that is kept back,
	// cut where it is too long to be one.
	value, keeping bool
	amount         []byte
}

// Read hands out what has been looked at.
func (f *filter) Read(p []byte) (int, error) {
	for f.from == len(f.out) {
		if f.err != nil {
			return 0, f.err
		}
		n, err := f.body.Read(f.in[:])
		f.out, f.from = f.out[:0], 0
		for in := f.in[:n]; len(in) > 0; {
			if in = in[f.pass(in):]; len(in) > 0 {
				f.take(in[0])
				in = in[1:]
			}
		}
		if f.err = err; err != nil && f.keeping {
			// What is cut off is decoded by nobody.
			f.settle()
		}
	}
	n := copy(p, f.out[f.from:])
	f.from += n
	return n, nil
}

// Close closes the body.
func (f *filter) Close() error { return f.body.Close() }

// pass hands out the rest of a text that is not kept back, most of what there is, and
// returns how much that is.
func (f *filter) pass(in []byte) int {
	if !f.quoted || f.keeping || f.escaped {
		return 0
	}
	n := bytes.IndexByte(in, '"')
	if n < 0 {
		n = len(in)
	}
	if escape := bytes.IndexByte(in[:n], '\\'); escape >= 0 {
		n = escape
	}
	f.name(in[:n]...)
	f.out = append(f.out, in[:n]...)
	return n
}

// name adds to the beginning of the text.
func (f *filter) name(part ...byte) {
	if room := len("allocatable") + 1 - len(f.text); room > 0 {
		f.text = append(f.text, part[:min(room, len(part))]...)
	}
}

// take looks at one byte.
func (f *filter) take(b byte) {
	switch {
	case f.quoted:
		f.inText(b)
	case f.keeping && !ends(b):
		f.keep(b)
	default:
		if f.keeping {
			f.settle()
		}
		f.between(b)
	}
}

// inText goes on with a text, be it kept back or not.
func (f *filter) inText(b byte) {
	switch {
	case f.escaped:
		f.escaped = false
	case b == '\\':
		f.escaped = true
	case b == '"':
		f.quoted = false
	default:
		f.name(b)
	}
	if !f.keeping {
		f.out = append(f.out, b)
		return
	}
	if f.keep(b); !f.quoted {
		f.settle()
	}
}

// between is a byte that is in no text and no amount.
func (f *filter) between(b byte) {
	switch b {
	case ' ', '\t', '\r', '\n':
		f.out = append(f.out, b)
		return
	case ':':
		f.next = f.depth == 0 && (string(f.text) == "capacity" || string(f.text) == "allocatable")
		f.value = f.depth == 1
		f.out = append(f.out, b)
		return
	}
	amount := f.value && b != '{' && b != '['
	switch b {
	case '{', '[':
		if f.depth > 0 || f.next && b == '{' {
			f.depth++
		}
	case '}', ']':
		f.depth = max(0, f.depth-1)
	case '"':
		f.quoted, f.text = true, f.text[:0]
	}
	f.next, f.value = false, false
	if amount {
		f.keeping = true
		f.keep(b)
		return
	}
	f.out = append(f.out, b)
}

// ends tells whether a byte is behind a number.
func ends(b byte) bool {
	switch b {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	default:
		return false
	}
}

// keep adds to the amount. A byte more than it may have is enough to see that it is none.
func (f *filter) keep(b byte) {
	if len(f.amount) <= maxQuantity+len(`""`) {
		f.amount = append(f.amount, b)
	}
}

// settle hands the amount out, or its replacement.
func (f *filter) settle() {
	if harmless(f.amount) {
		f.out = append(f.out, f.amount...)
	} else {
		f.out = append(f.out, replacement...)
	}
	f.keeping, f.amount = false, f.amount[:0]
}
