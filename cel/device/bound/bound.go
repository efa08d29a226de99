// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/cel/tree"
)

// Analysis is what was understood of an expression for sets of one size. It is
// safe for concurrent use.
type Analysis struct {
	// expression is what was read, for sets of a size, in the order of the tables or in any.
	expression *device.Expression
	size       int
	ascending  bool
	// usable: all errors are absorbed as they should. conjuncts leaves out those that
	// are true for every set.
	usable    bool
	conjuncts []condition
	// goal is the value of a preference, in place of conjuncts.
	goal quantity
	// within: no evaluation on devices as the API allows them crosses the limit of its cost.
	// Most expressions are far from it.
	within bool
	// provable: no conjunct is open.
	provable   bool
	leaves     []*leaf
	predicates []tabulated
	// boxes and sums count the conditions that have a table.
	boxes, sums int
	guards      []guard
	slots       int
	// bytes is about what all this takes, also when all leaves are planned.
	bytes int
}

// Understood reports whether bounds can tell anything at all.
func (a *Analysis) Understood() bool {
	if a.goal != nil {
		return a.usable && !isOpen(a.goal)
	}
	return a.usable && (len(a.conjuncts) == 0 || slices.ContainsFunc(a.conjuncts, func(c condition) bool { return !isOpen(c) }))
}

// Open counts the conjuncts about which bounds can tell nothing.
func (a *Analysis) Open() int {
	if !a.usable {
		return max(1, len(a.conjuncts))
	}
	count := 0
	for _, c := range a.conjuncts {
		if isOpen(c) {
			count++
		}
	}
	return count
}

// Size is about how many bytes of memory the analysis takes, without the expression.
func (a *Analysis) Size() int { return int(unsafe.Sizeof(*a)) + a.bytes }

// What bounds may take is limited, because expressions and devices are untrusted:
// quantifiers in quantifiers cost the number of devices to the power of their depth.
const (
	// maxBytes is about the memory that the tables of an expression may take.
	maxBytes = 16 << 20
	// entryBytes is what an entry of a leaf takes.
	entryBytes, pointerBytes = 64, 8
	// maxWork is how many devices one call of Infeasible or Bound may look at, which
	// takes some ten milliseconds.
	maxWork = 1 << 18
	// workBetween is after how much work the context is looked at: what is done for one device depends on the expression.
	workBetween = 1 << 6
)

// Fits reports whether the tables for that many devices are small enough to be begun. What is said of pairs is made as
// it is asked for, and bounds are exhausted when it takes too much.
func (a *Analysis) Fits(devices int) bool {
	each := len(a.leaves)*entryBytes + len(a.predicates)*2*maxArity*pointerBytes
	return devices <= maxBytes/max(1, each)
}

// Partial is a set of which a part is chosen. Devices go by their positions in the list
// that was tabulated.
type Partial struct {
	// Chosen are the devices in the set. Domain are those that may be added; the two have
	// no device in common.
	Chosen, Domain bitset.Set
	// Left is the number of devices to be added.
	Left int
	// Forced is where Infeasible puts those devices of the domain that are in every
	// completion which is not false. It may be nil.
	Forced bitset.Set
	// AtFixpoint says that the last devices were chosen from a partial set that Infeasible has
	// looked at, and that it had the same devices: what each of them can have has not
	// changed.
	AtFixpoint bool
}

// Bounds tell what an expression can become for partial sets of the devices that
// were tabulated. They must not be used concurrently, the tables may.
type Bounds struct {
	state state
	// before is memory for one call after the other.
	before bitset.Set
	// lent is memory that the state borrows, as much as most conditions do.
	lent struct {
		sets  [4]bitset.Set
		slots [4]int
	}
}

// NewBounds returns bounds for one search. What CEL has to be asked for on the way
// is interrupted by ctx and charged to the budget.
func (t *Tables) NewBounds(ctx context.Context, budget *cel.Budget) *Bounds {
	b := &Bounds{}
	sets := bitset.NewList(2+len(b.lent.sets), len(t.devices))
	for i := range b.lent.sets {
		b.lent.sets[i] = sets.At(2 + i)
	}
	slots := b.lent.slots[:]
	if t.slots > len(slots) {
		slots = make([]int, t.slots)
	}
	b.before = sets.At(0)
	b.state = state{tables: t, conjuncts: t.conjuncts, ctx: ctx, budget: budget, slots: slots, forced: sets.At(1), spare: b.lent.sets[:]}
	return b
}

// Evaluations counts how often CEL was asked for an entry of a table by these bounds,
// and Builds how many tables they began. What the tables had already counts for
// whoever asked first.
func (b *Bounds) Evaluations() int64 { return b.state.evaluations }

// Builds counts the tables that these bounds began.
func (b *Bounds) Builds() int64 { return b.state.builds }

// MayProve reports whether there may be a complete set of which Bound says that it is surely
// true: there is none if a conjunct is open.
func (b *Bounds) MayProve() bool { return b.state.tables.provable }

// Err returns why CEL could not be asked, nil if it could: the context has ended or
// the budget is used up.
func (b *Bounds) Err() error { return b.state.err }

// Exhausted tells that the expression is too expensive to have bounds. Nothing is
// looked at any more then.
func (b *Bounds) Exhausted() bool { return b.state.exhausted }

// state is a partial set in the course of an evaluation.
type state struct {
	Partial
	tables *Tables
	// conjuncts are what sets have to satisfy, active those that are not known to be true.
	conjuncts, active []condition
	ctx               context.Context
	budget            *cel.Budget
	// slots has the devices that the iteration variables stand for.
	slots []int
	// shallow: quantifiers look at chosen devices only, which is cheaper and tells
	// less.
	shallow bool
	// removed: a device is not possible any more.
	removed bool
	// forced are the devices that were chosen because no completion can do without
	// them. hypothetical: what is being propagated need not hold.
	forced       bitset.Set
	hypothetical bool
	// aborted: something was met that would end the evaluation of the expression,
	// whatever stands beside it.
	aborted bool
	// work counts the devices that the call looked at; exhausted: they were too many.
	work      int
	exhausted bool
	// evaluations and builds are counts, err is why CEL could not be asked.
	evaluations, builds int64
	err                 error
	// fixpoint is the number of devices, chosen and possible, for which nothing changed
	// since they were looked at, -1 if something did.
	fixpoint int
	// lacking are the rows of chosen devices that need all but one of those left to choose.
	lacking []*row
	// spare are sets that are not in use, spareRows a set for each device.
	spare           []bitset.Set
	spareRows       []bitset.Set
	spareSuccessors *successors
	spareWords      []uint64
	// running are the sums of chosen devices, by sum.index. exact are devices for any two of which a predicate is either true or
	// false, by predicate.index.
	running []running
	exact   []bitset.Set
}

// isTransient reports whether CEL may be asked again later.
func isTransient(err error) bool {
	var failure *cel.Error
	return errors.As(err, &failure) && (failure.Reason == cel.ReasonInterrupted || failure.Reason == cel.ReasonBudget)
}

// begin prepares for looking at a partial set. It is false if nothing can be told.
func (s *state) begin(p Partial) bool {
	s.Partial, s.work, s.aborted, s.fixpoint = p, 0, false, -1
	if p.AtFixpoint {
		s.fixpoint = s.devices()
	}
	return s.tables.usable && !s.exhausted && s.err == nil && !s.mayAbort()
}

// devices counts those that are chosen or possible.
func (s *state) devices() int { return s.Chosen.Count() + s.Domain.Count() }

// isSound reports whether what was found since begin can be relied on.
func (s *state) isSound() bool { return !s.aborted && !s.exhausted && s.err == nil }

// spend counts a device that is looked at. It is false if there were too many, or the context has ended:
// whatever is asked is open then.
func (s *state) spend() bool {
	s.work++
	s.exhausted = s.exhausted || s.work > maxWork || s.work%workBetween == 0 && s.ctx.Err() != nil
	return !s.exhausted
}

// borrow returns a copy of a set, to be given back.
func (s *state) borrow(of bitset.Set) bitset.Set {
	if n := len(s.spare); n > 0 {
		result := s.spare[n-1]
		s.spare = s.spare[:n-1]
		result.SetTo(of)
		return result
	}
	return slices.Clone(of)
}

func (s *state) giveBack(b bitset.Set) { s.spare = append(s.spare, b) }

// Bound returns what the expression may become.
func (b *Bounds) Bound(p Partial) Outcome {
	s := &b.state
	if !s.begin(p) {
		return Open
	}
	result := True
	for _, c := range s.conjuncts {
		result = result.and(c.bound(s))
	}
	if !s.isSound() {
		return Open
	}
	return result
}

// An evaluation that crosses the limit of its cost fails, whatever the expression says of
// the set. Bounds know nothing of costs, so they hold only where no evaluation can come to
// that. The same is so of what may abort ([guard]). But an evaluation goes through conjuncts from the
// first to the last, and ends with the first that is false: what stands behind it is never met.

func (a *Analysis) isWithin(sizes device.Sizes) bool {
	return costbound.Of(a.expression, a.size, sizes).Within(a.expression.Limits())
}

// Affordable reports whether no evaluation on some of the devices crosses the limit for one.
// Bounds of the whole expression may only be asked for if that is so.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.usable && (a.within || a.isWithin(device.SizesOf(devices)))
}

// Leading returns the analysis if it is affordable for some of the devices, otherwise one of so many
// of the first conjuncts that it is: a set for which one of them is false is refused before others are
// evaluated. The rest is open. nil if nothing is understood of them.
func (a *Analysis) Leading(devices []*device.Device) *Analysis {
	if a.Affordable(devices) {
		if a.Understood() {
			return a
		}
		return nil
	}
	if a.goal != nil {
		return nil
	}
	conjuncts := tree.Conjuncts(a.expression.AST().Expr())
	affordable := costbound.Leading(a.expression, a.size, device.SizesOf(devices), a.expression.Limits())
	reader := newAnalyzer(a.expression, a.size)
	reader.ascending = a.ascending
	leading := reader.analyze(conjuncts[:min(affordable, len(conjuncts)-1)]...)
	if !leading.Understood() || len(leading.conjuncts) == 0 {
		return nil
	}
	leading.conjuncts = append(leading.conjuncts, open{})
	leading.provable, leading.within = false, true
	return leading
}
