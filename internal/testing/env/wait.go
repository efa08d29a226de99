// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Patience is how long a test waits for what must come. It is below the five minutes after
	// which a scheduler tries pods again that nothing has happened for: what succeeds in time was
	// woken up.
	Patience = 3 * time.Minute

	pollPeriod = 50 * time.Millisecond
)

// Eventually waits until check has nothing to complain about. An error is final.
func Eventually(t testing.TB, what string, check func(context.Context) (complaint string, err error)) {
	t.Helper()
	complaint := ""
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, func(ctx context.Context) (_ bool, err error) {
		complaint, err = check(ctx)
		return err == nil && complaint == "", err
	})
	require.NoError(t, err, "%s: %s", what, complaint)
}

// Until waits until a condition holds. An error is final.
func Until(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, condition), what)
}

// Becomes waits until two values are equal, and shows their difference if they don't become it.
func Becomes[T any](t testing.TB, want T, get func() T) {
	t.Helper()
	var difference string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(pollPeriod) {
		if difference = cmp.Diff(want, get()); difference == "" {
			return
		}
	}
	t.Fatalf("(-want +got):\n%s", difference)
}
