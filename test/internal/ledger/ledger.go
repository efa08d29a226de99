// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger detects double allocations: a device in two claims at the same time. It reads every version of every claim
// from a watch, so it misses no state in between.
//
//	l := ledger.New(judge)
//	done, err := l.Follow(ctx, client, namespace, "") // before there are claims
//	...
//	l.Entries().Err() // nil
package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// A Ledger holds the current owner of each device. It processes the versions of claims in the order of their storage. It
// forgets deleted claims, so it can run for days. It is safe for concurrent use.
type Ledger struct {
	judge       func(*resourceapi.ResourceClaim) string
	mu          sync.Mutex
	versions    map[types.UID]string   // current version of each existing claim
	owners      map[string]string      // name of the claim that has a device, by "driver/pool/device"
	devices     map[types.UID][]string // devices of each claim that has any
	uses        func(*resourceapi.DeviceRequestAllocationResult) Use
	used        map[string]int64    // sum of the amounts in usedBy, by resource
	usedBy      map[types.UID][]Use // uses of each claim that has devices
	events      int
	allocations int
	violations  []string
}

// New returns an empty ledger. It calls judge with each claim that gets devices, one claim at a time. judge returns a mistake
// in the allocation, or "".
func New(judge func(*resourceapi.ResourceClaim) string) *Ledger {
	return &Ledger{
		judge: judge, versions: map[types.UID]string{}, owners: map[string]string{}, devices: map[types.UID][]string{},
		used: map[string]int64{}, usedBy: map[types.UID][]Use{},
	}
}

// A Use is the amount of a shared resource that an allocated device uses, such as the counters of a chip. All is the total
// amount that exists.
type Use struct {
	Of          string
	Amount, All int64
}

// AddUp makes the ledger add up the use of shared resources, and report if the sum exceeds the total. uses returns the zero
// value for a device that uses no shared resource. AddUp must be called before Follow.
func (l *Ledger) AddUp(uses func(*resourceapi.DeviceRequestAllocationResult) Use) { l.uses = uses }

// Follow watches the claims until the context ends; then done is closed. It begins with the existing claims. An empty namespace
// means all namespaces. An empty label selector means all claims.
func (l *Ledger) Follow(ctx context.Context, client kubernetes.Interface, namespace, labels string) (done <-chan struct{}, err error) {
	claims := client.ResourceV1().ResourceClaims(namespace)
	list, err := claims.List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		l.Enter(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = labels
			return claims.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watcher.ResultChan() {
			l.Enter(event)
		}
	}()
	return ended, nil
}

// Enter processes the next version of a claim.
func (l *Ledger) Enter(event watch.Event) {
	claim, ok := event.Object.(*resourceapi.ResourceClaim)
	if !ok {
		if event.Type == watch.Error {
			l.gap(apierrors.FromObject(event.Object))
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	had, has := l.devices[claim.UID], DevicesOf(claim)
	l.versions[claim.UID] = claim.ResourceVersion
	if event.Type == watch.Deleted {
		delete(l.versions, claim.UID)
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
	for _, use := range l.usedBy[claim.UID] {
		l.used[use.Of] -= use.Amount
	}
	delete(l.devices, claim.UID)
	delete(l.usedBy, claim.UID)
	if len(has) > 0 {
		l.own(claim, has)
	}
}

func (l *Ledger) own(claim *resourceapi.ResourceClaim, devices []string) {
	l.allocations++
	l.devices[claim.UID] = devices
	for _, device := range devices {
		if owner, taken := l.owners[device]; taken {
			l.blame(claim, "gets device %s, which claim %s has", device, owner)
		}
		l.owners[device] = claim.Name
	}
	l.use(claim)
	if complaint := l.judge(claim); complaint != "" {
		l.blame(claim, "%s", complaint)
	}
}

// use adds up the shared resources that a claim's devices use.
func (l *Ledger) use(claim *resourceapi.ResourceClaim) {
	if l.uses == nil {
		return
	}
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		use := l.uses(&results[i])
		if use.Of == "" {
			continue
		}
		l.usedBy[claim.UID] = append(l.usedBy[claim.UID], use)
		if l.used[use.Of] += use.Amount; l.used[use.Of] > use.All {
			l.blame(claim, "uses %d of %s, of which %d of %d are in use then", use.Amount, use.Of, l.used[use.Of], use.All)
		}
	}
}

func (l *Ledger) blame(claim *resourceapi.ResourceClaim, format string, args ...any) {
	l.violations = append(l.violations, fmt.Sprintf("claim %s at version %s: ", claim.Name, claim.ResourceVersion)+fmt.Sprintf(format, args...))
}

// Entries is a summary of a ledger.
type Entries struct {
	// Events is the number of versions of claims. Allocations is the number of versions that gave a claim devices.
	Events, Allocations int
	// InUse is the number of devices that are allocated now.
	InUse int
	// Violations lists all mistakes that the ledger has found.
	Violations []string
}

// Err returns an error if there are violations.
func (e Entries) Err() error {
	errs := make([]error, len(e.Violations))
	for i, violation := range e.Violations {
		errs[i] = errors.New(violation)
	}
	return errors.Join(errs...)
}

// Entries returns a summary of the ledger.
func (l *Ledger) Entries() Entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Entries{l.events, l.allocations, len(l.owners), slices.Clone(l.violations)}
}

// Difference describes how the ledger differs from a list of claims. It returns "" if they agree. They may disagree if they are
// not from the same moment.
func (l *Ledger) Difference(claims []resourceapi.ResourceClaim) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(claims) != len(l.versions) {
		return fmt.Sprintf("there are %d claims, and %d in the ledger", len(claims), len(l.versions))
	}
	for i := range claims {
		if l.versions[claims[i].UID] != claims[i].ResourceVersion {
			return "the ledger has another version of claim " + claims[i].Name
		}
	}
	return ""
}

// DevicesOf returns the devices of a claim, each "driver/pool/device". For a share of a device, the share ID is added.
func DevicesOf(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var devices []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		name := result.Driver + "/" + result.Pool + "/" + result.Device
		if result.ShareID != nil {
			name += "/" + string(*result.ShareID)
		}
		devices = append(devices, name)
	}
	return devices
}

// FollowStore is like Follow, but watches etcd instead of the API server. Tests that restart API servers need it, because they
// would lose events. etcd keeps its history when it restarts. FollowStore watches the claims of one namespace; they must be
// stored as resource.k8s.io/v1.
func (l *Ledger) FollowStore(ctx context.Context, endpoint, namespace string) (done <-chan struct{}, err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	prefix := "/registry/resourceclaims/" + namespace + "/"
	stored, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	for _, pair := range stored.Kvs {
		l.enterStored(watch.Added, pair.Value, pair.ModRevision)
	}
	versions := client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(stored.Header.Revision+1))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		for response := range versions {
			if err := response.Err(); err != nil && ctx.Err() == nil {
				l.gap(err)
			}
			for _, event := range response.Events {
				kind, pair := watch.Modified, event.Kv
				if event.Type == clientv3.EventTypeDelete {
					kind, pair = watch.Deleted, event.PrevKv
				}
				l.enterStored(kind, pair.Value, event.Kv.ModRevision)
			}
		}
		if ctx.Err() == nil {
			l.gap(errors.New("the watch of etcd has ended"))
		}
	}()
	return ended, nil
}

func (l *Ledger) enterStored(kind watch.EventType, value []byte, revision int64) {
	claim, err := decodeStored(value)
	if err != nil {
		l.gap(err)
		return
	}
	claim.ResourceVersion = strconv.FormatInt(revision, 10)
	l.Enter(watch.Event{Type: kind, Object: claim})
}

func decodeStored(value []byte) (*resourceapi.ResourceClaim, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("a claim in etcd: %w", err)
	}
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return nil, fmt.Errorf("a claim in etcd is a %s, and not of the version that is read here", kind)
	}
	return claim, nil
}

// gap records that the watch has lost versions.
func (l *Ledger) gap(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, fmt.Sprintf("versions of claims are missing: %v", err))
}
