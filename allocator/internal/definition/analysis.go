// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/cel/memo"
)

// Key identifies an expression as it was compiled.
type Key struct {
	// Environment is nil for a selector.
	Environment *device.Environment
	Text        fingerprint.Sum
	// IsGoal: it is a preference, of type int.
	IsGoal bool
}

func newExpressionKey(environment *device.Environment, expression string, variables []v1alpha1.Variable, isGoal bool) Key {
	text := fingerprint.AppendPart(nil, expression)
	for _, v := range variables {
		text = fingerprint.AppendPart(fingerprint.AppendPart(text, v.Name), v.Expression)
	}
	return Key{environment, fingerprint.Of(text), isGoal}
}

// analysisKey has everything that an analysis depends on.
type analysisKey struct {
	expression Key
	shape      SetShape
}

// SetShape has the properties that all sets of an evaluation share.
type SetShape struct {
	Size int
	// Ascending: they are the devices of one request, which are in the order of the candidates.
	Ascending bool
}

// ReadingBytes bounds what is known of expressions, whatever devices they are about.
const ReadingBytes = 32 << 20

// What expressions mean is shared by all allocators of the process, as the environment is
// that compiles expressions: it is about the text and nothing else.
var (
	Readings = memo.New(ReadingBytes)
	analyses = memo.In(Readings, func(_ analysisKey, r *finding) memo.Size { return memo.Size{Bytes: r.bytes} })
)

// finding is a property of a text, with about the number of bytes that it takes.
type finding struct {
	value any
	bytes int
}

// ReadBySelector returns the attributes that a selector reads, which find finds out unless it is known.
func ReadBySelector(selector string, find func() view.ReadSet) view.ReadSet {
	key := analysisKey{expression: Key{Text: fingerprint.Of([]byte(selector))}}
	return analyses.Get(key, func() finding {
		read := find()
		return finding{value: read, bytes: read.Bytes()}
	}).value.(view.ReadSet)
}

// AnalysisOf reads an expression for sets of the given shape.
func AnalysisOf(d *Definition, shape SetShape) *bound.Analysis {
	analyze := bound.Analyze
	switch {
	case d.Key.IsGoal:
		analyze = func(expression *device.Expression, size int) *bound.Analysis {
			return bound.AnalyzeGoal(expression, size, shape.Ascending)
		}
	case shape.Ascending:
		analyze = bound.AnalyzeAscending
	}
	return analyses.Get(analysisKey{d.Key, shape}, func() finding {
		analysis := analyze(d.Expression, shape.Size)
		return finding{value: analysis, bytes: analysis.Size() + d.Expression.Size()}
	}).value.(*bound.Analysis)
}
