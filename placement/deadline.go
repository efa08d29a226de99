// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultEvaluationTimeout is how long the expressions of one predicate may take on
	// one cluster. It is for what a limit on cost does not foresee. Most take some
	// microseconds, a usual one that costs all that it may about 50 milliseconds of one
	// core; cost alone would allow a quarter of a second.
	DefaultEvaluationTimeout = 100 * time.Millisecond
	// DefaultTimeout is how long all evaluations of one decision may take. Those of a
	// usual Placement on thousands of clusters take milliseconds; regular expressions on
	// ten thousand take half a second, and three times that on a machine that is busy.
	DefaultTimeout = 5 * time.Second
)

// Deadline is the cause of a context that ends because something takes too long, and
// not because the program does. Where it ends evaluations, that is no error of
// [Scheduler.Schedule] but an [Overrun].
type Deadline struct {
	// Limit is how long it may take.
	Limit time.Duration
}

// Error names the limit.
func (d *Deadline) Error() string { return fmt.Sprintf("it takes longer than %s", d.Limit) }

// WithDeadline returns a context that ends after a while because of a limit, which is
// longer where this is only a part of what is limited.
func WithDeadline(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithValue(ctx, undeadlined{}, ctx), after, &Deadline{limit})
}

type undeadlined struct{}

// withoutDeadline returns the context that [WithDeadline] was given: compiling is no evaluation.
func withoutDeadline(ctx context.Context) context.Context {
	if parent, ok := ctx.Value(undeadlined{}).(context.Context); ok {
		return parent
	}
	return ctx
}

// deadlineIn finds the Deadline that an error comes from, nil if there is none.
func deadlineIn(err error) *Deadline {
	if err == nil {
		return nil
	}
	var result *Deadline
	if errors.As(err, &result) {
		return result
	}
	return nil
}

// alarm gives evaluations that come one after another a context that ends when one
// takes too long. Most don't: they share a context and a timer, since to make both for
// each would cost as much as a short evaluation.
type alarm struct {
	parent context.Context
	// limit is for each of them; zero is none.
	limit time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newAlarm returns an alarm for evaluations in a context, with a limit for each of them; zero is none.
func newAlarm(ctx context.Context, limit time.Duration) *alarm {
	return &alarm{parent: ctx, limit: limit}
}

// start returns the context of the next evaluation.
func (a *alarm) start() context.Context {
	switch {
	case a.limit <= 0:
		return a.parent
	case a.ctx != nil:
		a.timer.Reset(a.limit)
	default:
		ctx, cancel := context.WithCancelCause(a.parent)
		a.ctx, a.cancel = ctx, cancel
		a.timer = time.AfterFunc(a.limit, func() { cancel(&Deadline{a.limit}) })
	}
	return a.ctx
}

// stop ends an evaluation. What the timer has ended, or is about to, is not used again.
func (a *alarm) stop() {
	if a.ctx != nil && !a.timer.Stop() {
		a.close()
	}
}

// close frees the context. There may be further evaluations all the same.
func (a *alarm) close() {
	if a.ctx != nil {
		a.timer.Stop()
		a.cancel(nil)
		a.ctx = nil
	}
}

// exceeded returns the Deadline that has ended the context of all evaluations, nil if none has.
func (a *alarm) exceeded() *Deadline { return deadlineIn(a.cause()) }

// interrupted is an error if nobody waits for the result any more. A Deadline is for
// evaluations: what follows them takes little time, and is done.
func (a *alarm) interrupted() error {
	if cause := a.cause(); cause != nil && deadlineIn(cause) == nil {
		return fmt.Errorf("scheduling was interrupted: %w", cause)
	}
	return nil
}

// cause is why the context ended, nil if it has not.
func (a *alarm) cause() error {
	if a.parent.Err() == nil {
		return nil
	}
	return context.Cause(a.parent)
}
