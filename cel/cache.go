// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"regexp/syntax"
	"runtime"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/cel/tree"
)

// compilations caches the most recently used results of compilations. If an expression is being compiled, other callers wait
// for the result instead of compiling it again. This matters because a compilation takes milliseconds, and the parallel Filter
// of a scheduler asks for the same expression from many goroutines at once.
type compilations struct {
	outcomes *memo.Memo[source, compilation]
}

// compilation is the result of compiling one expression.
type compilation struct {
	program *Program
	err     error
}

func newCompilations(bytes int64) *compilations {
	return &compilations{memo.In(memo.New(bytes), sizeOfCompilation)}
}

// compiling limits concurrent compilations, fairly between tenants: the expressions of one tenant are compiled one after the
// other. One processor stays free for other work.
var compiling = fairness.NewTurns(max(1, runtime.GOMAXPROCS(0)-1), 0)

// get returns the result of compiling a source. hit reports whether the result was cached. The error is [ErrNotCompiled] or the
// error of the context.
func (c *compilations) get(ctx context.Context, from source, compile func() (*Program, error)) (outcome compilation, hit bool, err error) {
	var entry *memo.Entry[source, compilation]
	// Longer expressions are not cached. They are usually rejected before parsing, which is cheap.
	if from.length() <= MaxExpressionLength {
		entry = c.outcomes.At(from)
		if known := entry.Look(); known != nil {
			return *known, true, nil
		}
	}
	if ctx.Value(onlyCompiled{}) != nil {
		return compilation{}, false, ErrNotCompiled
	}
	// Take the turn before the cache marks the expression as being compiled. Otherwise other callers of the expression would
	// also wait until this caller gets its turn.
	end, err := TakeTurn(ctx)
	if err != nil {
		return compilation{}, false, err
	}
	defer end()
	find := func() (compilation, error) {
		program, err := compile()
		return compilation{program, err}, nil
	}
	if entry == nil {
		outcome, err = find()
		return outcome, false, err
	}
	outcome, hit, err = entry.Find(ctx, find)
	if errors.Is(err, memo.ErrInterrupted) {
		err = context.Cause(ctx)
	}
	return outcome, hit, err
}

// Measured memory of a compiled expression: a fixed part, and a part per node of the syntax tree. The part per node covers the
// tree, types, references, positions and the plan. An invalid expression takes the memory of its text and of its error
// messages.
const (
	programBytes    = 2 << 10
	partBytes       = 420
	literalBytes    = 130
	instructionSize = 56
	mistakeBytes    = 2 << 10
	mistakeTexts    = 8
)

func sizeOfCompilation(from source, outcome *compilation) memo.Size {
	if outcome.program == nil {
		return memo.Size{Bytes: mistakeBytes + 2*from.length() + 2*len(outcome.err.Error())}
	}
	return memo.Size{Bytes: outcome.program.Size() + 2*len(from.variables)}
}

// Size returns the approximate memory of the program in bytes.
func (p *Program) Size() int {
	bytes := programBytes + 2*len(p.expression)
	ast.PostOrderVisit(p.AST().Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() == ast.LiteralKind {
			bytes += literalBytes
		} else {
			bytes += partBytes
		}
		bytes += sizeOfPattern(part)
	}))
	return bytes
}

// sizeOfPattern returns the memory of the constant regular expressions in the arguments of a call. They are compiled with the
// expression, and a compiled pattern may be a thousand times as large as its text.
func sizeOfPattern(part ast.Expr) int {
	if !tree.IsCall(part, "matches", "find", "findAll") {
		return 0
	}
	bytes := 0
	for _, argument := range part.AsCall().Args() {
		pattern, ok := tree.Literal[types.String](argument)
		if !ok {
			continue
		}
		parsed, err := syntax.Parse(string(pattern), syntax.Perl)
		if err != nil {
			continue
		}
		if compiled, err := syntax.Compile(parsed.Simplify()); err == nil {
			bytes += instructionSize * len(compiled.Inst)
		}
	}
	return bytes
}

// TakeTurn waits for a turn of the context's tenant, for compilations that don't use an [Environment]. The caller must call end
// when its compilation is done. The error is the error of the context. If the context has no tenant, TakeTurn does not wait.
func TakeTurn(ctx context.Context) (end func(), err error) {
	if tenant := fairness.TenantIn(ctx); tenant != "" {
		return compiling.Take(ctx, tenant)
	}
	return func() {}, context.Cause(ctx)
}

// ErrNotCompiled is the error of [Environment.Compile] if the expression is not cached and [OnlyCompiled] forbids compiling it.
var ErrNotCompiled = errors.New("the expression is not compiled yet")

type onlyCompiled struct{}

// OnlyCompiled returns a context that forbids compilations. With this context, [Environment.Compile] returns cached results,
// and ErrNotCompiled for any other expression.
func OnlyCompiled(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyCompiled{}, true)
}
