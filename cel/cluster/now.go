// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

const (
	// NowFunction is the name of the function in expressions.
	NowFunction = "now"
	// nowVariable is the name of the variable that replaces the call now() when an expression is parsed. Expressions can't use
	// this name, because it is not a valid identifier.
	nowVariable = "@now"

	// DefaultTick is the default step between two values of now().
	DefaultTick = 10 * time.Second

	// firstSecond and lastSecond are the limits of CEL's timestamps, the years 1 to 9999.
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// Moment returns the value of now() for a time: the last tick not after t, in UTC. Results change only between ticks, so there
// is no need to evaluate an expression more often. A tick is a multiple of whole seconds. A time outside of CEL's range becomes
// the first or the last time of the range.
func Moment(t time.Time, tick time.Duration) time.Time {
	seconds, length := min(max(t.Unix(), firstSecond), lastSecond), max(1, int64(tick/time.Second))
	start := seconds - (seconds%length+length)%length
	return time.Unix(max(start, firstSecond), 0).UTC()
}

// nowDeclarations returns the declarations of now().
func nowDeclarations() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.Variable(nowVariable, celgo.TimestampType),
		celgo.Macros(celgo.GlobalMacro(NowFunction, 0, func(f celgo.MacroExprFactory, _ ast.Expr, _ []ast.Expr) (ast.Expr, *celgo.Error) {
			return f.NewIdent(nowVariable), nil
		})),
	}
}
