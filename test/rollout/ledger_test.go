// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// ledger knows which claim has which device. It reads every version of every claim of
// a namespace, in the order in which the API server stored them, so that nothing that
// was ever true escapes it.
type ledger struct {
	mu       sync.Mutex
	owners   map[string]types.UID // by device, "driver/pool/name"
	claims   map[types.UID]*resourceapi.ResourceClaim
	events   int
	allocate int // allocations seen
	faults   []string
}

func newLedger() *ledger {
	return &ledger{owners: map[string]types.UID{}, claims: map[types.UID]*resourceapi.ResourceClaim{}}
}

// keepLedger keeps a ledger until the test ends.
func keepLedger(t *testing.T, namespace string) *ledger {
	t.Helper()
	l := newLedger()
	claims := client().ResourceV1().ResourceClaims(namespace)
	list, err := claims.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, options)
		},
	})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			l.enter(event)
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-done
	})
	return l
}

func (l *ledger) enter(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claim, ok := event.Object.(*resourceapi.ResourceClaim)
	if !ok {
		if event.Type == watch.Error {
			l.faults = append(l.faults, fmt.Sprintf("events are missing: %v", event.Object))
		}
		return
	}
	l.events++
	had := devicesOf(l.claims[claim.UID])
	has := devicesOf(claim)
	l.claims[claim.UID] = claim
	if event.Type == watch.Deleted {
		delete(l.claims, claim.UID)
		has = nil
	}
	if slices.Equal(had, has) {
		return
	}
	if len(had) > 0 && len(has) > 0 {
		l.blame(claim, "its devices change from %v to %v", had, has)
	}
	for _, device := range had {
		delete(l.owners, device)
	}
	l.own(claim, has)
}

func (l *ledger) own(claim *resourceapi.ResourceClaim, devices []string) {
	if len(devices) == 0 {
		return
	}
	l.allocate++
	for _, device := range devices {
		if owner, taken := l.owners[device]; taken {
			l.blame(claim, "gets device %s, which claim %s has", device, l.claims[owner].Name)
		}
		l.owners[device] = claim.UID
	}
	if complaint := judge(claim); complaint != "" {
		l.blame(claim, "%s", complaint)
	}
}

func (l *ledger) blame(claim *resourceapi.ResourceClaim, format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf("claim %s at version %s: ", claim.Name, claim.ResourceVersion)+fmt.Sprintf(format, args...))
}

// fault is what was ever wrong with claims, if anything was.
func (l *ledger) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var faults []error
	for _, fault := range l.faults {
		faults = append(faults, errors.New(fault))
	}
	return errors.Join(faults...)
}

// difference tells where the ledger is not the same as the claims that are listed.
func (l *ledger) difference(claims []resourceapi.ResourceClaim) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(claims) != len(l.claims) {
		return fmt.Sprintf("there are %d claims, and %d in the ledger", len(claims), len(l.claims))
	}
	for i := range claims {
		if known := l.claims[claims[i].UID]; known == nil || known.ResourceVersion != claims[i].ResourceVersion {
			return "the ledger has another version of claim " + claims[i].Name
		}
	}
	return ""
}

// devicesOf names the devices of a claim, which may be nil.
func devicesOf(claim *resourceapi.ResourceClaim) []string {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	var devices []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		devices = append(devices, result.Driver+"/"+result.Pool+"/"+result.Device)
	}
	return devices
}
