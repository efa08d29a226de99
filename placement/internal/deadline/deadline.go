// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Deadline is the cause of a context that ends because of a time limit, not because the program stops. If a Deadline ends an
// evaluation, the decision reports an overrun and not an error.
type Deadline struct {
	// Limit is the time limit that was exceeded.
	Limit time.Duration
}

// Error names the limit.
func (d *Deadline) Error() string { return fmt.Sprintf("the evaluation takes longer than %s", d.Limit) }

// With returns a context that ends after the duration after. The error message names limit, the time limit of all attempts
// together. limit is longer than after if the work continues later in another context.
func With(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithValue(ctx, undeadlined{}, ctx), after, &Deadline{limit})
}

// undeadlined is the context key for the context that was passed to With.
type undeadlined struct{}

// Without returns the context that was passed to [With], for work that the limit does not apply to.
func Without(ctx context.Context) context.Context {
	if parent, ok := ctx.Value(undeadlined{}).(context.Context); ok {
		return parent
	}
	return ctx
}

// In returns the Deadline that caused err, or nil.
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

// Timer provides contexts for successive evaluations. A context ends if its evaluation takes too long. The evaluations share
// one context and one timer, because creating both for each evaluation would cost as much as a short evaluation.
type Timer struct {
	// Parent is the context of all evaluations.
	Parent context.Context
	// limit is the time limit of each evaluation. Zero means no limit.
	limit time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// NewTimer returns a Timer for evaluations in ctx. limit is the time limit of each evaluation. Zero means no limit.
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

// Stop must be called when an evaluation ends. If the context of the evaluation has ended or is about to end, the next
// evaluation gets a new context.
func (t *Timer) Stop() {
	if t.ctx != nil && !t.timer.Stop() {
		t.Close()
	}
}

// Close releases the shared context. Start may still be called afterwards.
func (t *Timer) Close() {
	if t.ctx != nil {
		t.timer.Stop()
		t.cancel(nil)
		t.ctx = nil
	}
}

// Exceeded returns the Deadline that has ended Parent, or nil.
func (t *Timer) Exceeded() *Deadline { return In(t.cause()) }

// Interrupted returns an error if Parent ended for another cause than a Deadline. A Deadline limits only the evaluations,
// because the other steps of a decision take little time.
func (t *Timer) Interrupted() error {
	if cause := t.cause(); cause != nil && In(cause) == nil {
		return fmt.Errorf("scheduling was interrupted: %w", cause)
	}
	return nil
}

// cause returns the cause that ended Parent, or nil if Parent has not ended.
func (t *Timer) cause() error {
	if t.Parent.Err() == nil {
		return nil
	}
	return context.Cause(t.Parent)
}
