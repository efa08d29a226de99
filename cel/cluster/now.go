// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

const (
	// NowFunction is how the time is written in expressions.
	NowFunction = "now"
	// nowVariable is what it becomes when they are parsed. No expression can have such a name.
	nowVariable = "@now"

	// DefaultTick is how far apart two values of now() are where nothing else is configured.
	DefaultTick = 10 * time.Second

	// The first and the last second of CEL's timestamps, the years 1 to 9999.
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// Moment is the tick at or before a time, in UTC: what now() is. All answers within a tick are the same, so that
// no expression gives reason to look again more often. Ticks are whole seconds. Times that CEL does not have are
// the first one, or the last one.
func Moment(t time.Time, tick time.Duration) time.Time {
	seconds, length := min(max(t.Unix(), firstSecond), lastSecond), max(1, int64(tick/time.Second))
	start := seconds - (seconds%length+length)%length
	return time.Unix(max(start, firstSecond), 0).UTC()
}

// nowDeclarations are what an environment needs to have now().
func nowDeclarations() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.Variable(nowVariable, celgo.TimestampType),
		celgo.Macros(celgo.GlobalMacro(NowFunction, 0, func(f celgo.MacroExprFactory, _ ast.Expr, _ []ast.Expr) (ast.Expr, *celgo.Error) {
			return f.NewIdent(nowVariable), nil
		})),
	}
}
