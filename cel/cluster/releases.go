// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/celset/celset/cel/tree"
)

// Releases returns the versions that the selector compares with a cluster's version, if they are literals without a
// pre-release, such as 1.31.0. Such a comparison is a trap: for semver, 1.31.0-vendor.1 is a pre-release and less than 1.31.0.
// Releases ignores comparisons that may cut off a vendor's suffix.
func (s *Selector) Releases() sets.Set[string] {
	result := sets.New[string]()
	for _, e := range s.expressions {
		tree.Visit(e.program.AST().Expr(), func(part ast.Expr, _ tree.Names) {
			if !tree.IsCall(part, "isGreaterThan", "isLessThan", "compareTo") || !part.AsCall().IsMemberFunction() {
				return
			}
			left, right := part.AsCall().Target(), part.AsCall().Args()[0]
			for _, sides := range [][2]ast.Expr{{left, right}, {right, left}} {
				if release, ok := releaseOf(sides[0]); ok && isUnchangedVersion(sides[1]) {
					result.Insert(release)
				}
			}
		})
	}
	return result
}

// releaseOf returns the version in a call such as semver("1.31.0").
func releaseOf(expr ast.Expr) (release string, ok bool) {
	if !tree.IsCall(expr, "semver") {
		return "", false
	}
	text, ok := tree.Literal[types.String](expr.AsCall().Args()[0])
	parsed, err := version.Parse(string(text))
	if !ok || err != nil || parsed.PreRelease() != "" {
		return "", false
	}
	return fmt.Sprintf("%d.%d.%d", parsed.Major(), parsed.Minor(), parsed.Patch()), true
}

// cutting are the functions that an expression may use to remove a suffix.
var cutting = []string{"split", "substring", "replace", "find", "findAll"}

// isUnchangedVersion reports whether expr is the version of a cluster, without a function of cutting applied to it.
func isUnchangedVersion(expr ast.Expr) bool {
	isRead, isCut := false, !tree.IsCall(expr, "semver")
	tree.Visit(expr, func(part ast.Expr, _ tree.Names) {
		isRead = isRead || tree.QualifiedName(part) == clusterVariable+".status.version.kubernetes"
		isCut = isCut || part.Kind() == ast.CallKind && slices.Contains(cutting, part.AsCall().FunctionName())
	})
	return isRead && !isCut
}
