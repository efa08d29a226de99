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

// Key identifies a compiled expression.
type Key struct {
	// Environment compiled the expression. It is nil for a selector.
	Environment *device.Environment
	Text        fingerprint.Sum
	// IsGoal is true for the expression of a preference, whose type is int.
	IsGoal bool
}

func newExpressionKey(environment *device.Environment, expression string, variables []v1alpha1.Variable, isGoal bool) Key {
	text := fingerprint.AppendPart(nil, expression)
	for _, v := range variables {
		text = fingerprint.AppendPart(fingerprint.AppendPart(text, v.Name), v.Expression)
	}
	return Key{environment, fingerprint.Of(text), isGoal}
}

// analysisKey holds everything that an analysis depends on.
type analysisKey struct {
	expression Key
	shape      SetShape
}

// SetShape holds the properties that are equal for all sets that a search evaluates for one expression.
type SetShape struct {
	Size int
	// Ascending is true if all devices of the set are from one request. They then have the order of the candidates.
	Ascending bool
}

// AnalysisBytes is the limit in bytes for the cached analyses of expressions.
const AnalysisBytes = 32 << 20

// All allocators of the process share the analyses, as they share the environment that compiles expressions. An analysis
// depends only on the expression, not on devices.
var (
	Analyses = memo.New(AnalysisBytes)
	analyses = memo.In(Analyses, func(_ analysisKey, r *sizedResult) memo.Size { return memo.Size{Bytes: r.bytes} })
)

// sizedResult is a cached property of an expression with its estimated size in bytes.
type sizedResult struct {
	value any
	bytes int
}

// ReadBySelector returns the attributes that a selector reads. If they are not cached, it calls find.
func ReadBySelector(selector string, find func() view.ReadSet) view.ReadSet {
	key := analysisKey{expression: Key{Text: fingerprint.Of([]byte(selector))}}
	return analyses.Get(key, func() sizedResult {
		read := find()
		return sizedResult{value: read, bytes: read.Bytes()}
	}).value.(view.ReadSet)
}

// AnalysisOf returns the analysis of an expression for sets of the given shape.
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
	return analyses.Get(analysisKey{d.Key, shape}, func() sizedResult {
		analysis := analyze(d.Expression, shape.Size)
		return sizedResult{value: analysis, bytes: analysis.Size() + d.Expression.Size()}
	}).value.(*bound.Analysis)
}
