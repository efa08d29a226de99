// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package normal rewrites expressions over devices into a normal form, so that package read needs to support only one of
// several spellings.
//
// Each name of cel.bind is replaced by its value (inline.go). Quantifiers over constants are written out (unroll.go).
// Conditions on lists become quantifiers (rules.go, rewrite.go). The result is again an expression, so that CEL can evaluate
// its parts. It must fail for the same sets as the original. absorption.go finds the parts that may abort the evaluation.
//
// A [Scope] says which names are iteration variables over devices. [ShapeOf] returns the text of a part without variable names.
package normal
