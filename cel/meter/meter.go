// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"golang.org/x/sync/semaphore"
)

// nanosecondsPerUnit is the time of function calls that is charged as one unit of cost. In ordinary expressions a unit takes a
// fifth of this time.
const nanosecondsPerUnit = 250

// The context is checked after this number of charges, or after calls with this total time in nanoseconds.
const (
	chargesPerLook     = 128
	nanosecondsPerLook = 20_000
)

// Limits are the limits of one evaluation.
type Limits struct {
	// Cost is the limit in CEL cost units. Zero means no limit.
	Cost uint64
	// Bytes limits the total size of the results of functions. The limit grows by [BytesPerUnit] for each charged unit. Zero
	// means no limit.
	Bytes uint64
}

// BytesPerUnit is the memory allowed for each unit that CEL charges, in addition to [Limits.Bytes]. Nested loops make many small
// texts but retain few of them, so a fixed limit would be too low.
const BytesPerUnit = 8

// Expense is the cost of an evaluation, and the time and memory of its function calls.
type Expense struct {
	// Cost is the cost that CEL charges, in CEL cost units.
	Cost uint64
	// Load is the sum of the loads of function calls.
	Load Load
}

// Units returns the charged cost: the CEL cost or the time of calls in units, whichever is more.
func (e Expense) Units() uint64 { return max(e.Cost, uint64(e.Load.Units())) }

// Units converts the time to units of cost.
func (l Load) Units() float64 { return l.Nanoseconds / nanosecondsPerUnit }

// LimitError is the error of an evaluation that would exceed a limit.
type LimitError struct {
	// Limit is the exceeded limit, in Unit.
	Limit uint64
	Unit  Unit
	// Function is the name of the function whose call would have exceeded the limit, and ID is the ID of the call's expression.
	// They are empty and zero if a step other than a call exceeded the limit.
	Function string
	ID       int64
}

// Unit is the unit of a limit.
type Unit string

const (
	// UnitCost means CEL cost units.
	UnitCost Unit = "CEL cost units"
	// UnitBytes means bytes.
	UnitBytes Unit = "bytes"
)

// Error returns a message with the exceeded limit.
func (e *LimitError) Error() string {
	if e.Function == "" {
		return fmt.Sprintf("evaluation needs more than %d %s", e.Limit, e.Unit)
	}
	return fmt.Sprintf("evaluation needs more than %d %s with this call of %s", e.Limit, e.Unit, e.Function)
}

// InterruptedError is the error of an evaluation whose context ended.
type InterruptedError struct {
	// Err is the error of the context.
	Err error
}

// Error returns the message with the error of the context.
func (e *InterruptedError) Error() string { return "evaluation interrupted: " + e.Err.Error() }

// Unwrap returns the error of the context.
func (e *InterruptedError) Unwrap() error { return e.Err }

// account has the expenses and limits of one evaluation. If a limit is exceeded, it panics with a LimitError or an
// InterruptedError. An error value can't end the evaluation, because "||" would absorb it.
type account struct {
	ctx    context.Context
	limits Limits
	// cost is the sum of CEL's charges. nanoseconds and bytes are the sums of the loads of calls.
	cost               uint64
	nanoseconds, bytes float64
	// charges counts the charges since the last check of the context, and since is the time of calls in nanoseconds.
	charges int
	since   float64
	// hasPermit is true if the evaluation has a permit to create more than lightBytes.
	hasPermit bool
	// values is the stack of call arguments. A function must not keep the slice after its call. call describes the call that is
	// being charged. Both are fields, because allocating them for each call would take longer than most calls.
	values []ref.Val
	call   Call
}

func (a *account) expense() Expense { return Expense{a.cost, Load{a.nanoseconds, a.bytes}} }

// charge adds a CEL cost, and ends the evaluation if a limit is exceeded.
func (a *account) charge(cost uint64) {
	a.cost += cost
	if a.cost < cost {
		a.cost = ^uint64(0)
	}
	if a.limits.Cost > 0 && a.cost > a.limits.Cost {
		panic(&LimitError{Limit: a.limits.Cost, Unit: UnitCost})
	}
	if a.charges++; a.charges >= chargesPerLook {
		a.checkContext()
	}
}

// load adds the load of a call that is about to be made, or of a read if by is nil. It ends the evaluation if a limit is
// exceeded.
func (a *account) load(of Load, by *call) {
	if of == (Load{}) {
		return
	}
	a.nanoseconds += of.Nanoseconds
	if most := float64(a.limits.Cost) * nanosecondsPerUnit; a.limits.Cost > 0 && a.nanoseconds > most {
		a.nanoseconds = most + nanosecondsPerUnit
		panic(by.exceeds(a.limits.Cost, UnitCost))
	}
	a.bytes += of.Bytes
	if a.limits.Bytes > 0 && a.bytesLeft() < 0 {
		panic(by.exceeds(a.limits.Bytes, UnitBytes))
	}
	if a.since += of.Nanoseconds; a.since >= nanosecondsPerLook {
		a.checkContext()
	}
	if a.bytes > lightBytes && !a.hasPermit {
		a.hasPermit = acquirePermit(a.ctx)
	}
}

// checkContext ends the evaluation if its context has ended.
func (a *account) checkContext() {
	a.charges, a.since = 0, 0
	if a.ctx == nil {
		return
	}
	select {
	case <-a.ctx.Done():
		panic(&InterruptedError{Err: a.ctx.Err()})
	default:
	}
}

// scope is the outermost activation of an evaluation. It has the input and the account.
type scope struct {
	interpreter.Activation
	account account
	// initialValues is the first memory of the argument stack. It is large enough for most expressions.
	initialValues [16]ref.Val
}

// scopes has unused scopes. After a panic a scope is not reused, because other values may still refer to it.
var scopes = sync.Pool{New: func() any { return new(scope) }}

// accountOf returns the account of the evaluation that vars belongs to. It takes one step for each enclosing macro.
func accountOf(vars interpreter.Activation) *account {
	if s := scopeOf(vars); s != nil {
		return &s.account
	}
	return &account{}
}

// scopeOf returns the scope of the evaluation that vars belongs to. It returns nil when planning folds constants, because there
// is no evaluation.
func scopeOf(vars interpreter.Activation) *scope {
	if frame, ok := vars.(*interpreter.ExecutionFrame); ok {
		vars = frame.Unwrap()
	}
	for vars != nil {
		if s, ok := vars.(*scope); ok {
			return s
		}
		vars = vars.Parent()
	}
	return nil
}

// bytesLeft returns the number of bytes that the next call may create.
func (a *account) bytesLeft() float64 {
	if a.limits.Bytes == 0 {
		return noLimit
	}
	return float64(a.limits.Bytes+BytesPerUnit*min(a.cost, a.limits.Cost)) - a.bytes
}

// A scheduler evaluates on sixteen nodes at a time, and each evaluation may create some MiB. Most evaluations need much less.
// An evaluation that needs more waits for one of two permits, so the memory of a process is bounded by two large evaluations.

const (
	// lightBytes is the number of bytes that an evaluation may create without a permit.
	lightBytes = 256 << 10
	// heavyAtOnce is the number of permits. It limits the evaluations of a process that create more than lightBytes at the same
	// time.
	heavyAtOnce = 2
)

var heavy = semaphore.NewWeighted(heavyAtOnce)

// acquirePermit waits for a permit. An evaluation that holds a permit never waits for another one.
func acquirePermit(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	if err := heavy.Acquire(ctx, 1); err != nil {
		panic(&InterruptedError{Err: err})
	}
	return true
}

func endTurn() { heavy.Release(1) }
