// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/interpreter"
)

// interruption returns why an evaluation was stopped by its context, nil if it
// was not. Callers look for the error of the context, metrics and messages
// want its cause: the result is both.
func interruption(ctx context.Context, err error) error {
	if !errors.Is(err, interpreter.InterruptError{}) || ctx.Err() == nil {
		return nil
	}
	return ContextError(ctx)
}

// ContextError returns the cause of an ended context such that errors.Is also
// finds the context's error, nil if the context has not ended.
func ContextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
