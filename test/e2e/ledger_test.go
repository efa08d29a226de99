// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// forgedLabel is on claims that a test has given devices that others have.
const forgedLabel = "e2e.celset.dev/forged"

// ledger knows which claim has which device. It reads every version of every claim, in
// the order in which the API server stored them.
type ledger struct {
	watcher *watchtools.RetryWatcher
	done    chan struct{}

	mu          sync.Mutex
	has         map[types.UID][]string // devices by claim
	last        map[types.UID][]string // the same by the pod that the claim was made for
	owners      map[string]string      // names of claims by device
	allocations int                    // so far
	faults      []error
}

// keepLedger keeps a ledger of a cluster without claims until it is closed.
func keepLedger(ctx context.Context) (*ledger, error) {
	claims := client().ResourceV1().ResourceClaims(metav1.NamespaceAll)
	list, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	l := newLedger()
	l.watcher, err = watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(l.done)
		for event := range l.watcher.ResultChan() {
			l.enter(event)
		}
	}()
	return l, nil
}

func newLedger() *ledger {
	return &ledger{done: make(chan struct{}), has: map[types.UID][]string{}, last: map[types.UID][]string{}, owners: map[string]string{}}
}

func (l *ledger) close() {
	l.watcher.Stop()
	<-l.done
}

func (l *ledger) enter(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claim, ok := event.Object.(*resourceapi.ResourceClaim)
	if !ok {
		if event.Type == watch.Error {
			l.faults = append(l.faults, fmt.Errorf("events are missing: %v", event.Object))
		}
		return
	}
	if _, forged := claim.Labels[forgedLabel]; forged {
		return
	}
	had := l.has[claim.UID]
	var has []string
	if event.Type != watch.Deleted {
		has = devicesOf(claim)
	}
	if slices.Equal(had, has) {
		return
	}
	for _, device := range had {
		delete(l.owners, device)
	}
	for _, device := range has {
		if owner, taken := l.owners[device]; taken {
			l.faults = append(l.faults, fmt.Errorf("claim %s gets device %s, which claim %s has", claim.Name, device, owner))
		}
		l.owners[device] = claim.Name
	}
	l.has[claim.UID] = has
	if len(has) > 0 {
		for _, owner := range claim.OwnerReferences {
			l.last[owner.UID] = has
		}
		l.allocations++
	}
}

// devicesOf names the devices of a claim: "driver/pool/name".
func devicesOf(claim *resourceapi.ResourceClaim) []string {
	var devices []string
	if claim.Status.Allocation != nil {
		for _, result := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, result.Driver+"/"+result.Pool+"/"+result.Device)
		}
	}
	return devices
}

// devices are those of the claim that was made for a pod, or had been before the claim
// went. The name in the pod's status is of no use then: it may be that of a second claim,
// made after the first was gone, before all had heard that the pod had ended. The ledger
// may be a little behind the API server.
func (l *ledger) devices(ctx context.Context, pod types.UID) ([]string, error) {
	var devices []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		devices = slices.Clone(l.last[pod])
		return len(devices) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("no claim of it has ever had a device: %w", err)
	}
	return devices, nil
}

// fault is what was ever wrong with claims, if anything was.
func (l *ledger) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.faults...)
}

func (l *ledger) allocated() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allocations
}

// TestLedger shows that it would find out.
func TestLedger(t *testing.T) {
	claim := func(name string, devices ...string) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		if len(devices) > 0 {
			c.Status.Allocation = &resourceapi.AllocationResult{}
			for _, device := range devices {
				c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: device})
			}
		}
		return c
	}
	l := newLedger()
	for _, event := range []watch.Event{
		{Type: watch.Added, Object: claim("a")},
		{Type: watch.Modified, Object: claim("a", "1", "2")},
		{Type: watch.Modified, Object: claim("b", "3")},
		{Type: watch.Modified, Object: claim("a")},
		{Type: watch.Modified, Object: claim("b", "3")},
		{Type: watch.Added, Object: claim("c", "1")},
		{Type: watch.Deleted, Object: claim("c", "1")},
		{Type: watch.Added, Object: claim("d", "1")},
	} {
		l.enter(event)
	}
	require.NoError(t, l.fault())
	require.Equal(t, 4, l.allocated())
	require.ElementsMatch(t, []string{"d/p/1", "d/p/3"}, slices.Collect(maps.Keys(l.owners)))
	l.enter(watch.Event{Type: watch.Added, Object: claim("e", "2", "3")})
	require.EqualError(t, l.fault(), "claim e gets device d/p/3, which claim b has")
}
