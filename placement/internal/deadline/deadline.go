// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Deadline is the cause of a context that ends because something takes too long, and
// not because the program does. Evaluations that it ends are no error of a decision, but an overrun.
type Deadline struct {
	// Limit is the time that it may take.
	Limit time.Duration
}

// Error names the limit.
func (d *Deadline) Error() string { return fmt.Sprintf("it takes longer than %s", d.Limit) }

// With returns a context that ends after a time because of a limit. The limit is longer if the context is for a part
// of the limited work only.
func With(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithValue(ctx, undeadlined{}, ctx), after, &Deadline{limit})
}

// undeadlined is the key of the context that was given to With.
type undeadlined struct{}

// Without returns the context that was given to [With], for work that is not limited.
func Without(ctx context.Context) context.Context {
	if parent, ok := ctx.Value(undeadlined{}).(context.Context); ok {
		return parent
	}
	return ctx
}

// In finds the Deadline that an error comes from, nil if there is none.
func In(err error) *Deadline {
	if err == nil {
		return nil
	}
	var result *Deadline
	if errors.As(err, &result) {
		return result
	}
	return nil
}

// Timer gives successive evaluations a context that ends if one of them takes too long. Evaluations share a context and a
// timer, because making both for each would cost as much as a short evaluation.
type Timer struct {
	// Parent is the context of all evaluations.
	Parent context.Context
	// limit is the limit of each evaluation; zero is none.
	limit time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// NewTimer returns a Timer for evaluations in a context, with a limit for each of them; zero is none.
func NewTimer(ctx context.Context, limit time.Duration) *Timer {
	return &Timer{Parent: ctx, limit: limit}
}

// Start returns the context of the next evaluation.
func (t *Timer) Start() context.Context {
	switch {
	case t.limit <= 0:
		return t.Parent
	case t.ctx != nil:
		t.timer.Reset(t.limit)
	default:
		ctx, cancel := context.WithCancelCause(t.Parent)
		t.ctx, t.cancel = ctx, cancel
		t.timer = time.AfterFunc(t.limit, func() { cancel(&Deadline{t.limit}) })
	}
	return t.ctx
}

// Stop is called when an evaluation ends. A context that the timer has ended, or is about to end, is not used again.
func (t *Timer) Stop() {
	if t.ctx != nil && !t.timer.Stop() {
		t.Close()
	}
}

// Close frees the context. There may be further evaluations.
func (t *Timer) Close() {
	if t.ctx != nil {
		t.timer.Stop()
		t.cancel(nil)
		t.ctx = nil
	}
}

// Exceeded returns the Deadline that has ended the context of all evaluations, nil if none has.
func (t *Timer) Exceeded() *Deadline { return In(t.cause()) }

// Interrupted returns an error if the context of all evaluations ended for another cause than a Deadline. A Deadline
// limits evaluations only: the steps that follow take little time.
func (t *Timer) Interrupted() error {
	if cause := t.cause(); cause != nil && In(cause) == nil {
		return fmt.Errorf("scheduling was interrupted: %w", cause)
	}
	return nil
}

// cause returns the cause for which the context of all evaluations ended, nil if it has not.
func (t *Timer) cause() error {
	if t.Parent.Err() == nil {
		return nil
	}
	return context.Cause(t.Parent)
}
