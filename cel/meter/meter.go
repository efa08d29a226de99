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

// nanosecondsPerUnit is what a unit of cost stands for: no call of a function takes more
// time for each unit that it is charged with. Steps of ordinary expressions take a fifth of it.
const nanosecondsPerUnit = 250

// The context is looked at after so many charges, or so many nanoseconds of calls.
const (
	chargesPerLook     = 128
	nanosecondsPerLook = 20_000
)

// Limits are those of one evaluation.
type Limits struct {
	// Cost in CEL cost units, zero for none.
	Cost uint64
	// Bytes is the size of all that functions make, besides [BytesPerUnit] for each unit of
	// cost; zero for none.
	Bytes uint64
}

// BytesPerUnit is what an evaluation may make for each unit that CEL charges: many small
// texts are what an expression with nested loops makes, and few of them are kept.
const BytesPerUnit = 8

// Expense is what an evaluation took.
type Expense struct {
	// Cost is what CEL charges, in CEL cost units.
	Cost uint64
	// Load is what the calls of functions took.
	Load Load
}

// Units is what is charged for it: the cost, or the time of calls, whichever is more.
func (e Expense) Units() uint64 { return max(e.Cost, uint64(e.Load.Units())) }

// Units is how much cost stands for the time.
func (l Load) Units() float64 { return l.Nanoseconds / nanosecondsPerUnit }

// LimitError says that an evaluation was ended because it needs more than it may have.
type LimitError struct {
	// Limit is the one that would have been crossed, in Unit.
	Limit uint64
	Unit  Unit
	// Function is the call that was not made any more, empty if none was to be made. ID is
	// that of its expression, zero if there is none.
	Function string
	ID       int64
}

// Unit tells limits apart.
type Unit string

const (
	// UnitCost stands for CEL cost units.
	UnitCost Unit = "CEL cost units"
	// UnitBytes stands for bytes.
	UnitBytes Unit = "bytes"
)

// Error says which limit.
func (e *LimitError) Error() string {
	if e.Function == "" {
		return fmt.Sprintf("evaluation needs more than %d %s", e.Limit, e.Unit)
	}
	return fmt.Sprintf("evaluation needs more than %d %s with this call of %s", e.Limit, e.Unit, e.Function)
}

// InterruptedError says that the context of an evaluation ended.
type InterruptedError struct {
	// Err is the error of the context.
	Err error
}

// Error says so.
func (e *InterruptedError) Error() string { return "evaluation interrupted: " + e.Err.Error() }

// Unwrap returns the error of the context.
func (e *InterruptedError) Unwrap() error { return e.Err }

// account is what one evaluation has spent and may spend. It ends the evaluation by a
// panic with one of the errors above: an error value would be absorbed by "||".
type account struct {
	ctx    context.Context
	limits Limits
	// cost is what CEL charged, nanoseconds is what calls took by their loads, bytes what
	// they made.
	cost               uint64
	nanoseconds, bytes float64
	// charges and since are what was charged since the context was looked at.
	charges int
	since   float64
	// heavy tells that this is one of the few evaluations that may make much.
	heavy bool
	// values is the stack of the arguments of calls: nobody may keep them longer than a call
	// takes. call is the one that is being charged. They are here because to make them for each
	// call would take longer than most calls do.
	values []ref.Val
	call   Call
}

func (a *account) expense() Expense { return Expense{a.cost, Load{a.nanoseconds, a.bytes}} }

// charge adds what CEL charges.
func (a *account) charge(cost uint64) {
	a.cost += cost
	if a.cost < cost {
		a.cost = ^uint64(0)
	}
	if a.limits.Cost > 0 && a.cost > a.limits.Cost {
		panic(&LimitError{Limit: a.limits.Cost, Unit: UnitCost})
	}
	if a.charges++; a.charges >= chargesPerLook {
		a.look()
	}
}

// load adds what a call is about to take, or a read where there is no call.
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
		a.look()
	}
	if a.bytes > lightBytes && !a.heavy {
		a.heavy = wait(a.ctx)
	}
}

// look ends the evaluation if its context has ended.
func (a *account) look() {
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

// scope is the outermost activation of an evaluation: the input, and its account.
type scope struct {
	interpreter.Activation
	account account
	// room is where the stack of arguments begins: most expressions need no more.
	room [16]ref.Val
}

// scopes are empty ones, to be used again. That of an evaluation which was ended by a panic
// is none of them: nobody knows who still has it.
var scopes = sync.Pool{New: func() any { return new(scope) }}

// accountOf finds the account of the evaluation that a frame belongs to: as many steps
// away as macros are nested.
func accountOf(vars interpreter.Activation) *account {
	if s := scopeOf(vars); s != nil {
		return &s.account
	}
	return &account{}
}

// scopeOf is nil where there is no input: constants are folded while an expression is planned.
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

// bytesLeft is how many bytes the next call may make.
func (a *account) bytesLeft() float64 {
	if a.limits.Bytes == 0 {
		return noLimit
	}
	return float64(a.limits.Bytes+BytesPerUnit*min(a.cost, a.limits.Cost)) - a.bytes
}

// A scheduler evaluates on sixteen nodes at a time, and each evaluation may make some MiB.
// Few make any: so those that make much take turns, and what all of them have is bounded by
// what two may have.

const (
	// lightBytes is what an evaluation may make without waiting for its turn.
	lightBytes = 256 << 10
	// heavyAtOnce is how many evaluations may make more at the same time, in one process.
	heavyAtOnce = 2
)

var heavy = semaphore.NewWeighted(heavyAtOnce)

// wait waits for a turn. An evaluation never waits for another one while it has one.
func wait(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	if err := heavy.Acquire(ctx, 1); err != nil {
		panic(&InterruptedError{Err: err})
	}
	return true
}

func endTurn() { heavy.Release(1) }
