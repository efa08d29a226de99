// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree reads the syntax trees of CEL expressions after macro expansion.
//
// cel-go's package ast has the nodes, and visitors without scopes. This package adds the functions that all readers of
// expressions share:
//
//   - A visitor with scopes: [Visit] passes each part with the names that are hidden at its place.
//     Readers that need more than names use their own [Scope].
//   - Recognizers of single nodes: [IsCall], [IsIdent], [IsLiteral], [Literal],
//     [IsEmptyList] and [MemberOf]. Recognizers of expanded macros:
//     [QuantifierOf] (all, exists, exists_one), [CollectionOf] (filter, map) and [BindingOf]
//     (cel.bind).
//   - A [Builder] for parts that replace other parts, with the types and
//     references that CEL needs for evaluating them.
//
// For example, this visits the parts that read the set, and not a loop variable with the same name:
//
//	tree.Visit(expression, func(part ast.Expr, hidden tree.Names) {
//		if tree.IsIdent(part, "devices") && !hidden.Has("devices") {
//			// part is the set itself.
//		}
//	})
//
// A recognizer accepts only the exact expansion of a macro, because any other comprehension may have another meaning.
package tree
