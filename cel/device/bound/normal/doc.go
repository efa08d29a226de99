// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package normal rewrites expressions over devices into a normal form, so that the reader needs to understand only one of several
// spellings.
//
// Each name of cel.bind is replaced by its value (inline.go). Quantifiers over constants are written out (unroll.go). Conditions
// on lists become quantifiers (rules.go, rewrite.go). The result is an expression again, so that CEL can evaluate its parts. It
// must fail where the original fails. absorption.go finds the parts that may end the whole evaluation.
//
// A [Scope] maps names to iteration variables over devices. [ShapeOf] writes a part without the names of its variables.
package normal
