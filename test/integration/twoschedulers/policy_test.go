// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/internal/env"
)

// policy returns the admission policy in docs/two-schedulers.md.
func policy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/two-schedulers.md")
	require.NoError(t, err)
	for block := range strings.SplitSeq(string(page), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		if strings.Contains(block, "kind: ValidatingAdmissionPolicy\n") {
			return block
		}
	}
	require.Fail(t, "the page has no policy")
	return ""
}

// keepApart applies the admission policy. Afterwards the API server must accept a constraint only in claims for one class of
// devices.
func (c *cluster) keepApart(t *testing.T) {
	const connected, other = "connected.example.com", "single.example.com"
	c.ApplyText(t, policy(t))
	create := func(ctx context.Context, constrained bool, classes ...string) error {
		var parts []env.Part
		if constrained {
			parts = append(parts, env.Constrained("neighbours", env.Contiguous(classes[0], 2)))
		}
		for _, class := range classes {
			name, _, _ := strings.Cut(class, ".")
			parts = append(parts, env.Request(name, class, 1))
		}
		_, err := c.claims().Create(ctx, env.Claim("policy", parts...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const message = "CEL device constraints are for devices of the class connected.example.com"
	// After its creation, the API server takes a moment to enforce the policy.
	env.Until(t, "a claim with a constraint on another class is refused", func(ctx context.Context) (bool, error) {
		err := create(ctx, true, other)
		return err != nil && strings.Contains(err.Error(), message), nil
	})
	require.ErrorContains(t, create(t.Context(), true, connected, other), message)
	require.NoError(t, create(t.Context(), true, connected))
	require.NoError(t, create(t.Context(), false, connected, other))
}
