// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// ledger knows who has which device, at every moment: the versions of claims come in the
// order in which the API server stored them. It forgets claims that are gone, so that it
// can be kept for days.
type ledger struct {
	mu          sync.Mutex
	owners      map[string]string      // names of claims by "driver/pool/device"
	devices     map[types.UID][]string // of claims that have any
	events      int
	allocations int
	violations  []string
}

func newLedger() *ledger {
	return &ledger{owners: map[string]string{}, devices: map[types.UID][]string{}}
}

// follow keeps the ledger until the context ends. There must be no claims yet.
func (l *ledger) follow(ctx context.Context, t *testing.T, client kubernetes.Interface, namespace string) (done <-chan struct{}) {
	t.Helper()
	claims := client.ResourceV1().ResourceClaims(namespace)
	list, err := claims.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, options)
		},
	})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watcher.ResultChan() {
			l.enter(event)
		}
	}()
	return ended
}

func (l *ledger) enter(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claim, ok := event.Object.(*resourceapi.ResourceClaim)
	if !ok {
		if event.Type == watch.Error {
			// From here on the ledger would have gaps.
			l.violations = append(l.violations, fmt.Sprintf("versions of claims are missing: %v", event.Object))
		}
		return
	}
	l.events++
	had, has := l.devices[claim.UID], devicesOf(claim)
	if event.Type == watch.Deleted {
		has = nil
	}
	if slices.Equal(had, has) {
		return
	}
	if len(had) > 0 && len(has) > 0 {
		l.blame(claim, "changes its devices from %v to %v", had, has)
	}
	for _, device := range had {
		delete(l.owners, device)
	}
	delete(l.devices, claim.UID)
	if len(has) > 0 {
		l.own(claim, has)
	}
}

func (l *ledger) own(claim *resourceapi.ResourceClaim, devices []string) {
	l.allocations++
	l.devices[claim.UID] = devices
	for _, device := range devices {
		if owner, taken := l.owners[device]; taken {
			l.blame(claim, "gets device %s, which claim %s has", device, owner)
		}
		l.owners[device] = claim.Name
	}
	if complaint := judge(claim); complaint != "" {
		l.blame(claim, "%s", complaint)
	}
}

func (l *ledger) blame(claim *resourceapi.ResourceClaim, format string, args ...any) {
	l.violations = append(l.violations, fmt.Sprintf("claim %s at version %s: ", claim.Name, claim.ResourceVersion)+fmt.Sprintf(format, args...))
}

// entries are the sums of the ledger.
type entries struct {
	events, allocations, inUse int
	violations                 []string
}

func (l *ledger) entries() entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return entries{l.events, l.allocations, len(l.owners), slices.Clone(l.violations)}
}

func devicesOf(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var devices []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		devices = append(devices, result.Driver+"/"+result.Pool+"/"+result.Device)
	}
	return devices
}
