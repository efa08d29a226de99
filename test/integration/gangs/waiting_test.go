// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celset/celset/test/internal/env"
)

// TestGroupsWithoutClaimsAreTold creates a group whose pods refer to missing claims. The condition of each pod must name this
// reason, and the pods must run when the claims exist.
func TestGroupsWithoutClaimsAreTold(t *testing.T) {
	l := newLab(t, "missing", 2)
	const pods = 4
	l.podGroup(t, "late", pods)
	var names []string
	for i := range pods {
		names = append(names, l.memberOf(t, "late", i, fmt.Sprint("late-", i)))
	}
	env.Eventually(t, "all pods are told", func(context.Context) (string, error) {
		for _, name := range names {
			told := false
			for _, c := range l.Pod(t, name).Status.Conditions {
				told = told || c.Type == corev1.PodScheduled && c.Message != ""
			}
			if !told {
				return name + " has no condition", nil
			}
		}
		return "", nil
	})
	for _, name := range names {
		l.CreateClaim(t, name, l.inARow(2)...)
	}
	l.requireServed(t, 2, names...)
}
