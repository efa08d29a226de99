// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/cel/memo"
)

// expressionKey is an expression as it was compiled.
type expressionKey struct {
	// environment is nil for a selector.
	environment *device.Environment
	text        fingerprint.Sum
	// isGoal: it is a preference, of type int.
	isGoal bool
}

func newExpressionKey(environment *device.Environment, expression string, variables []v1alpha1.Variable, isGoal bool) expressionKey {
	text := fingerprint.AppendPart(nil, expression)
	for _, v := range variables {
		text = fingerprint.AppendPart(fingerprint.AppendPart(text, v.Name), v.Expression)
	}
	return expressionKey{environment, fingerprint.Of(text), isGoal}
}

// analysisKey is what an analysis depends on.
type analysisKey struct {
	expression expressionKey
	shape      setShape
}

// setShape is what is known of all sets that an expression is asked about.
type setShape struct {
	size int
	// ascending: they are the devices of one request, which are in the order of the candidates.
	ascending bool
}

// readingBytes bounds what is known of expressions, whatever devices they are about.
const readingBytes = 32 << 20

// What expressions mean is shared by all allocators of the process, as the environment is
// that compiles expressions: it is about the text and nothing else.
var (
	readings = memo.New(readingBytes)
	analyses = memo.In(readings, func(_ analysisKey, r *finding) memo.Size { return memo.Size{Bytes: r.bytes} })
)

// finding is a property of a text, with about the number of bytes that it takes.
type finding struct {
	value any
	bytes int
}

// readBySelector returns the attributes that a selector reads, which find finds out unless it is known.
func readBySelector(selector string, find func() view.ReadSet) view.ReadSet {
	key := analysisKey{expression: expressionKey{text: fingerprint.Of([]byte(selector))}}
	return analyses.Get(key, func() finding {
		read := find()
		return finding{value: read, bytes: read.Bytes()}
	}).value.(view.ReadSet)
}

// analysisOf reads an expression for sets of the given shape.
func analysisOf(d *definition, shape setShape) *bound.Analysis {
	analyze := bound.Analyze
	switch {
	case d.key.isGoal:
		analyze = func(expression *device.Expression, size int) *bound.Analysis {
			return bound.AnalyzeGoal(expression, size, shape.ascending)
		}
	case shape.ascending:
		analyze = bound.AnalyzeAscending
	}
	return analyses.Get(analysisKey{d.key, shape}, func() finding {
		analysis := analyze(d.expression, shape.size)
		return finding{value: analysis, bytes: analysis.Size() + d.expression.Size()}
	}).value.(*bound.Analysis)
}
