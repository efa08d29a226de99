// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/internal/env"
)

// TestAPIServerRefusesExpressionsOverTheLimit tests expressions that are too long. The API server already rejects them, because
// its limit for opaque parameters is as large as our limit for expressions.
func TestAPIServerRefusesExpressionsOverTheLimit(t *testing.T) {
	t.Parallel()
	l := newLab(t, "too-long", 0)
	long := "true // " + strings.Repeat("x", v1alpha1.MaxExpressionLength)
	_, err := client().ResourceV1().ResourceClaims(l.Namespace).Create(t.Context(),
		env.Claim("long", env.Request("mla", "any", 1), env.Constrained("long", long)), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	require.ErrorContains(t, err, "spec.devices.config[0].opaque.parameters: Too long")
}
