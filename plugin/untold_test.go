// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A gated pod is let through once its time is over, when the queue asks while it activates the pod.
func TestUntold(t *testing.T) {
	u := newUntold()
	u.patience = 10 * time.Millisecond
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	answers := make(chan bool, 1)
	activate := func(*v1.Pod) { answers <- u.isDue(pod, nil) }
	require.False(t, u.isDue(pod, activate))
	require.True(t, <-answers)
	// Pods that are gone are forgotten.
	require.Eventually(t, func() bool {
		u.mutex.Lock()
		defer u.mutex.Unlock()
		return len(u.due) == 0
	}, time.Minute, time.Millisecond)
}
