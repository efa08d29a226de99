// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree reads the syntax trees of CEL expressions, after macros were expanded.
//
// cel-go's package ast has the nodes, and visitors that know nothing of names. What every
// reader of expressions needs besides is here, once:
//
//   - A visitor that knows scopes: [Visit] tells of each part which names are hidden where it
//     stands. A reader that needs to know more of a name than that has a [Scope] of its own.
//   - Recognisers. Those of single nodes are [IsCall], [IsIdent], [IsLiteral], [Literal],
//     [IsEmptyList] and [MemberOf]; those of what macros were expanded to are
//     [QuantifierOf] (all, exists, exists_one), [CollectionOf] (filter, map) and [BindingOf]
//     (cel.bind).
//   - A [Builder] for parts that are to take the place of others, with the types and
//     references that CEL needs to evaluate them.
//
// What speaks of the set, for example, and not of a variable that has its name:
//
//	tree.Visit(expression, func(part ast.Expr, hidden tree.Names) {
//		if tree.IsIdent(part, "devices") && !hidden.Has("devices") {
//			// part is the set itself.
//		}
//	})
//
// What is not exactly what a macro is expanded to is not recognised: it may mean anything.
package tree
