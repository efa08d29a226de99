// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"weak"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/memo"

	"github.com/celset/celset/allocator/internal/fingerprint"
)

// deviceView is the devices of a node as expressions with some read set see them: drivers,
// capacities and those attributes in the order of the candidates, without the names of
// devices, pools and nodes. Nodes of one hardware type share one.
type deviceView struct {
	number viewNumber
	// values are the devices of the first such node, one value each, because identity is
	// equality. Attributes beyond the read set may have other values on other nodes.
	values []*device.Device
	// bytes is about what it takes.
	bytes int
}

// maxReadSets is for how many read sets the views of a node are kept.
const maxReadSets = 16

// seenView is the view of a node for some read set.
type seenView struct {
	readSet
	*deviceView
}

// keptViews are the views of a node for the read sets that were needed last, the newest
// last. The list is replaced as a whole.
type keptViews struct{ *memo.Slot[[]seenView] }

func newKeptViews(memory *memo.Memory) keptViews {
	return keptViews{memo.NewSlot[[]seenView](memory)}
}

func (k keptViews) get(f readSet) *deviceView {
	if latest := k.Look(); latest != nil {
		for i := range *latest {
			if kept := &(*latest)[i]; kept.readSet == f {
				return kept.deviceView
			}
		}
	}
	return nil
}

// keep forgets the oldest if there are too many. What others keep at the same time may be
// lost.
func (k keptViews) keep(f readSet, h *deviceView) {
	var latest []seenView
	if before := k.Look(); before != nil {
		latest = *before
	}
	latest = append(slices.Clone(latest[max(0, len(latest)-maxReadSets+1):]), seenView{f, h})
	k.Keep(&latest, sizeOfSeenViews(latest))
}

// view is the node's devices as the claims see them.
func (s *search) view() *deviceView {
	if s.seen == nil {
		s.seen = s.allocator.viewOf(s.inventory, s.claims)
	}
	return s.seen
}

// viewOf is an inventory's devices as the claims see them.
func (a *Allocator) viewOf(of *inventory.Inventory, claims []*resourceapi.ResourceClaim) *deviceView {
	return a.cache.viewOf(of, a.readSetOf(claims))
}

func (c *Cache) viewOf(of *inventory.Inventory, read readSet) *deviceView {
	known := of.Attached.(keptViews)
	if h := known.get(read); h != nil {
		return h
	}
	h := c.findView(of, read)
	known.keep(read, h)
	return h
}

func (c *Cache) findView(of *inventory.Inventory, read readSet) *deviceView {
	var all []byte
	for _, p := range of.Pools {
		for _, slice := range p.Slices {
			content := c.content(slice, read)
			all = append(all, content[:]...)
		}
	}
	return c.views.Get(viewKey{fingerprint.Of(all), read}, func() *deviceView { return c.newView(of) })
}

func (c *Cache) newView(of *inventory.Inventory) *deviceView {
	h := &deviceView{number: viewNumber(c.viewsMade.Add(1)), values: make([]*device.Device, len(of.Candidates))}
	for i, candidate := range of.Candidates {
		h.values[i] = device.New(candidate.Pool.Driver, candidate.Device)
		h.bytes += sizeOfDevice(candidate.Device)
	}
	return h
}

// content is the fingerprint of what expressions with the read set see of a slice.
func (c *Cache) content(slice *resourceapi.ResourceSlice, read readSet) fingerprint.Sum {
	return c.contents.Get(contentKey{weak.Make(slice), read}, func() fingerprint.Sum {
		memory := fingerprint.Memory.Get().(*[]byte)
		defer fingerprint.Memory.Put(memory)
		writer := contentWriter{to: fingerprint.AppendPart((*memory)[:0], []byte(slice.Spec.Driver)), reads: read.reader(slice.Spec.Driver)}
		for i := range slice.Spec.Devices {
			writer.device(&slice.Spec.Devices[i])
		}
		if writer.failed {
			// Content that can't be written is like no other.
			writer.to = fmt.Appendf(writer.to, "%s %s %s", slice.UID, slice.ResourceVersion, slice.Name)
		}
		*memory = writer.to
		return fingerprint.Of(writer.to)
	})
}

// contentWriter writes devices such that different ones are different.
type contentWriter struct {
	to     []byte
	reads  func(resourceapi.QualifiedName) bool
	failed bool
	// attributes are those of a device in the order of their names.
	attributes []namedAttribute
}

type namedAttribute struct {
	name  resourceapi.QualifiedName
	value resourceapi.DeviceAttribute
}

func (w *contentWriter) device(d *resourceapi.Device) {
	w.to = fingerprint.AppendBool(fingerprint.AppendCapacities(w.to, d.Capacity), d.AllowMultipleAllocations)
	w.attributes = w.attributes[:0]
	for name, value := range d.Attributes {
		if !w.reads(name) {
			value = withoutValue(value)
		}
		w.attributes = append(w.attributes, namedAttribute{name, value})
	}
	slices.SortFunc(w.attributes, func(a, b namedAttribute) int { return strings.Compare(string(a.name), string(b.name)) })
	w.to = binary.BigEndian.AppendUint64(w.to, uint64(len(w.attributes)))
	for i := range w.attributes {
		w.to = fingerprint.AppendPart(w.to, []byte(w.attributes[i].name))
		w.to = append(w.to, emptyList(&w.attributes[i].value))
		w.message(&w.attributes[i].value)
	}
}

func (w *contentWriter) message(m fingerprint.Message) {
	var ok bool
	w.to, ok = fingerprint.AppendMessage(w.to, m)
	w.failed = w.failed || !ok
}

// emptyList tells what kind of empty list an attribute is, 0 if it is none. To expressions an
// empty list is a value, but the protocol buffer of the attribute has nothing of it. No API
// server sends those.
func emptyList(a *resourceapi.DeviceAttribute) byte {
	switch {
	case a.IntValues != nil && len(a.IntValues) == 0:
		return 1
	case a.BoolValues != nil && len(a.BoolValues) == 0:
		return 2
	case a.StringValues != nil && len(a.StringValues) == 0:
		return 3
	case a.VersionValues != nil && len(a.VersionValues) == 0:
		return 4
	}
	return 0
}

func hasEmptyList(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) bool {
	for _, a := range attributes {
		if emptyList(&a) != 0 {
			return true
		}
	}
	return false
}

// withoutValue is what matters of an attribute that is not read: upstream's selectors fail
// on any device with an attribute of no known type, or with a version that is none.
func withoutValue(a resourceapi.DeviceAttribute) resourceapi.DeviceAttribute {
	switch {
	case a.IntValues != nil:
		a.IntValues = anyInts
	case a.BoolValues != nil:
		a.BoolValues = anyBools
	case a.StringValues != nil:
		a.StringValues = anyStrings
	case a.VersionValues != nil:
	case a.IntValue != nil:
		a.IntValue = &anyInts[0]
	case a.BoolValue != nil:
		a.BoolValue = &anyBools[0]
	case a.StringValue != nil:
		a.StringValue = &anyStrings[0]
	}
	return a
}

// These take the place of values.
var anyInts, anyBools, anyStrings = []int64{0}, []bool{false}, []string{""}

// selectionRow remembers which devices pass the selectors of a request. A verdict is
// entered when the selectors were evaluated for the device.
type selectionRow struct {
	// known and passes have a bit for each device. A bit of known is set after that of
	// passes.
	known, passes []atomic.Uint64
}

func newSelectionRow(devices int) *selectionRow {
	words := bitset.Words(devices)
	return &selectionRow{known: make([]atomic.Uint64, words), passes: make([]atomic.Uint64, words)}
}

func (r *selectionRow) enter(device int, passes bool) {
	if passes {
		r.passes[device/64].Or(1 << (device % 64))
	}
	r.known[device/64].Or(1 << (device % 64))
}

// word has what is remembered of the devices from position 64*w on.
func (r *selectionRow) word(w int) (known, passes uint64) {
	known = r.known[w].Load()
	return known, r.passes[w].Load()
}

// of is what is remembered of a device.
func (r *selectionRow) of(device int) selection {
	bit := uint64(1) << (device % 64)
	switch {
	case r.known[device/64].Load()&bit == 0:
		return selectionUnknown
	case r.passes[device/64].Load()&bit != 0:
		return selected
	default:
		return notSelected
	}
}
