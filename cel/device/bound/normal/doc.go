// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package normal rewrites expressions over devices into a normal form, so that the reader has to understand one spelling
// of what can be spelled in many ways.
//
// A name of cel.bind is replaced by its value (inline.go). Quantifiers over constants are written out (unroll.go), and
// conditions on lists become quantifiers (rules.go, rewrite.go). The result is an expression again, so that CEL can
// evaluate its parts. It must fail where the original fails: absorption.go finds the parts that may end an evaluation
// whatever stands beside them.
//
// A [Scope] maps names to iteration variables that stand for devices, and [ShapeOf] writes a part without the names of its
// variables.
package normal
