// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// DefaultGrace is the longest time from the admission of a write until it is stored. The API server ends updates and patches
	// after 34 s, including calls of webhooks, and etcd ends the write some seconds later.
	DefaultGrace = time.Minute
	// DefaultMaxAdmitted is the maximum number of admitted writes that the guard has not seen as stored yet. Schedulers write
	// some hundred claims a second, and the watch delivers a write within a second.
	DefaultMaxAdmitted = 20_000
	// maxOfClaim is the maximum number of admitted writes of one claim that the guard has not seen as stored yet. Schedulers
	// retry a failed write only after seconds, so a few are enough.
	maxOfClaim = 32
	// maxResults is the maximum number of devices in a write. The API server rejects writes with more devices before it calls
	// the webhook. The limit protects against other callers, because a judgement compares all devices of a write with each
	// other.
	maxResults = resourceapi.AllocationResultsMaxSize
	// maxResult is the maximum size of one allocated device in bytes. It is limited because admitted writes stay in memory.
	// Names of devices, pools and drivers have up to 253 bytes, and a device has up to 8 binding conditions.
	maxResult = 16 << 10
	// maxReads limits the reads of conflicting claims, and the reads of drivers' slices, for one write. A write has more
	// conflicting claims only if devices are shared or partitioned. Then the write may already fit after one of these claims
	// has lost its devices.
	maxReads = 16
)

// Live reads the currently stored objects from etcd, not from a cache that may be stale.
type Live interface {
	// Claim returns the claim with the name, or nil if it does not exist.
	Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
	// Slices returns the slices of a driver.
	Slices(ctx context.Context, driver string) ([]*resourceapi.ResourceSlice, error)
}

// Options configures a [Guard].
type Options struct {
	// Live reads the stored objects. It must not be nil.
	Live Live
	// Grace is the longest time from the admission of a write until it is stored. 0 means DefaultGrace.
	Grace time.Duration
	// MaxAdmitted is the maximum number of admitted writes that are not seen as stored yet. 0 means DefaultMaxAdmitted.
	MaxAdmitted int
	// Now returns the current time. The time must not go back. nil means time.Now.
	Now func() time.Time
}

// Guard judges writes of allocations. It is safe for concurrent use.
type Guard struct {
	live        Live
	grace       time.Duration
	maxAdmitted int
	now         func() time.Time

	mu      sync.Mutex
	account account
	catalog catalog
}

// New returns a Guard that has seen nothing. The caller must pass all claims and slices to it before it judges.
func New(options Options) *Guard {
	g := &Guard{
		live: options.Live, now: options.Now,
		grace: cmp.Or(options.Grace, DefaultGrace), maxAdmitted: cmp.Or(options.MaxAdmitted, DefaultMaxAdmitted),
		account: newAccount(), catalog: newCatalog(),
	}
	if g.now == nil {
		g.now = time.Now
	}
	return g
}

// See records a stored version of a claim. The caller may pass versions in any order, and repeatedly.
func (g *Guard) See(claim *resourceapi.ResourceClaim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.see(claim)
}

// Gone records that the claim with the UID no longer exists.
func (g *Guard) Gone(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.remove(uid)
}

// ReplaceClaims records a complete list of claims. version is the resource version of the list.
func (g *Guard) ReplaceClaims(claims []*resourceapi.ResourceClaim, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.replace(claims, version)
}

// SeeSlice records the latest version of a slice. It may modify the slice.
func (g *Guard) SeeSlice(slice *resourceapi.ResourceSlice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog.see(slice)
}

// GoneSlice records that the slice with the name no longer exists.
func (g *Guard) GoneSlice(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog.remove(name)
}

// ReplaceSlices records a complete list of slices.
func (g *Guard) ReplaceSlices(slices []*resourceapi.ResourceSlice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog = newCatalog()
	for _, slice := range slices {
		g.catalog.see(slice)
	}
}

// Counts are numbers for metrics of a Guard.
type Counts struct {
	// Claims is the number of claims that have devices or may get them at any moment. Admitted is the number of unsettled writes.
	Claims, Admitted int
	// Twice is the number of devices that two or more stored claims have as whole devices. Such allocations were stored without a
	// judgement, for example before the guard was installed.
	Twice int
}

// Counts computes the counts. It visits all devices in use.
func (g *Guard) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{Claims: len(g.account.entries), Admitted: g.account.admitted, Twice: g.account.twice()}
}

// Admitted returns the number of unsettled writes.
func (g *Guard) Admitted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.account.admitted
}

// Settle removes admitted writes that can't be stored any more because their Grace is over. It first reads the claims of these
// writes, at most the given number, and returns the first error.
func (g *Guard) Settle(ctx context.Context, most int) error {
	g.mu.Lock()
	overdue := g.account.overdue(g.now().Add(-g.grace), most)
	g.mu.Unlock()
	for _, claim := range overdue {
		if _, err := g.read(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// read reads the stored version of a claim and records it. It reports whether the account changed.
func (g *Guard) read(ctx context.Context, of Claim) (news bool, err error) {
	settled := g.now().Add(-g.grace)
	stored, err := g.live.Claim(ctx, of.Namespace, of.Name)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if stored == nil || stored.UID != of.UID {
		return g.account.remove(of.UID), nil
	}
	news = g.account.see(stored)
	return g.account.expire(of.UID, settled) || news, nil
}

// isNewer reports whether a resource version is later than another one, which may be empty. It returns false if the versions
// can't be compared.
func isNewer(version, than string) bool {
	if than == "" {
		return isUpTo(version, version)
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// isUpTo reports whether a resource version is equal to or earlier than another one. It returns false if they can't be
// compared.
func isUpTo(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order <= 0
}
