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

// compilations remembers the outcome of the most recently used compilations.
// A second caller that asks for an expression which is just being compiled
// waits for that compilation: it costs milliseconds, and the parallel Filter of
// a scheduler asks for the same expression from many goroutines at once.
type compilations struct {
	outcomes *memo.Memo[source, compilation]
}

// compilation is the outcome for one expression.
type compilation struct {
	program *Program
	err     error
}

func newCompilations(bytes int64) *compilations {
	return &compilations{memo.In(memo.New(bytes), sizeOfCompilation)}
}

// compiling are the turns of tenants. Expressions of one are compiled one after the other, and one
// processor is left to what does not compile.
var compiling = fairness.NewTurns(max(1, runtime.GOMAXPROCS(0)-1), 0)

// get returns the outcome for a source and whether it was there already. The error is that of
// the context.
func (c *compilations) get(ctx context.Context, from source, compile func() (*Program, error)) (outcome compilation, hit bool, err error) {
	var entry *memo.Entry[source, compilation]
	// What is longer is refused without being parsed, and not worth remembering.
	if from.length() <= MaxExpressionLength {
		entry = c.outcomes.At(from)
		if known := entry.Look(); known != nil {
			return *known, true, nil
		}
	}
	if ctx.Value(onlyCompiled{}) != nil {
		return compilation{}, false, ErrNotCompiled
	}
	// The turn comes first: the caller that compiles what others wait for waits for no turn itself.
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

// What a compiled expression takes, measured: so much by itself, and for each part of its
// syntax tree, of which there are the tree, types, references, positions and a plan. Of a
// mistake the error has the text, and what is said about it.
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

// Size is about how many bytes of memory the program takes.
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

// sizeOfPattern is that of a regular expression, which functions take as their last argument
// but for limits. One that is written in the expression is compiled with it, and may be a
// thousand times as large as its text.
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

// TakeTurn waits for the turn of the context's tenant to compile what no [Environment] does. The
// caller calls end when that is done. The error is that of the context. Where work is for no tenant, it
// waits for none.
func TakeTurn(ctx context.Context) (end func(), err error) {
	if tenant := fairness.TenantIn(ctx); tenant != "" {
		return compiling.Take(ctx, tenant)
	}
	return func() {}, context.Cause(ctx)
}

// ErrNotCompiled is the error of [Environment.Compile] where an expression would have to be compiled and
// [OnlyCompiled] forbids that.
var ErrNotCompiled = errors.New("the expression is not compiled yet")

type onlyCompiled struct{}

// OnlyCompiled returns a context in which expressions are looked up and none is compiled.
func OnlyCompiled(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyCompiled{}, true)
}
