// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree reads the syntax trees of CEL expressions after macro expansion.
//
// cel-go's package ast has the nodes, and visitors that ignore scopes. This package adds functions that several packages need:
//
//   - A visitor with scopes: [Visit] passes each part together with the names that loops around the part declare. Callers that
//     need more than names use their own [Scope].
//   - Recognizers of single nodes: [IsCall], [IsIdent], [IsLiteral], [Literal], [IsEmptyList] and [MemberOf].
//     Recognizers of expanded macros: [QuantifierOf] (all, exists, exists_one), [CollectionOf] (filter, map) and
//     [BindingOf] (cel.bind).
//   - A [Builder] for parts that replace other parts, with the types and references that CEL needs to evaluate them.
//
// For example, this code finds the parts that read the variable "devices", and not a loop variable with the same name:
//
//	tree.Visit(expression, func(part ast.Expr, hidden tree.Names) {
//		if tree.IsIdent(part, "devices") && !hidden.Has("devices") {
//			// part is the set itself.
//		}
//	})
//
// A recognizer accepts only the exact expansion of a macro, because another comprehension may have another meaning.
package tree
