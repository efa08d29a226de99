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
	// DefaultGrace is for how long an admitted write may still be stored. The API server ends updates
	// and patches after 34 s, the calls of webhooks included, and etcd what it was given some seconds
	// later.
	DefaultGrace = time.Minute
	// DefaultMaxAdmitted is how many writes may be admitted and not seen yet. Schedulers write some
	// hundred a second, and see them within a second.
	DefaultMaxAdmitted = 20_000
	// maxOfClaim is how many of them may be of one claim. A scheduler tries again after some seconds.
	maxOfClaim = 32
	// maxResults is how many devices a write may give to a claim. The API server refuses more before it asks; who
	// asks in its place could have all of them compared with each other.
	maxResults = resourceapi.AllocationResultsMaxSize
	// maxResult is how many bytes each may have: names of devices, pools and drivers have up to 253, and conditions that a
	// device waits for up to 8 names. What is admitted is kept.
	maxResult = 16 << 10
	// maxReads is how many claims are read before one write is refused, and the slices of how many drivers. More
	// claims can be in the way of a share or a partition only, and it is enough that one of them has stopped to be.
	maxReads = 16
)

// Live reads what is stored at the time of the call: from etcd, not from a cache that may be late.
type Live interface {
	// Claim returns nil if there is no claim of that name.
	Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
	// Slices returns those of a driver.
	Slices(ctx context.Context, driver string) ([]*resourceapi.ResourceSlice, error)
}

// Options are those of a [Guard].
type Options struct {
	// Live must be given.
	Live Live
	// Grace is for how long after its admission a write may still be stored; DefaultGrace if 0.
	Grace time.Duration
	// MaxAdmitted is how many writes may be admitted and not seen yet; DefaultMaxAdmitted if 0.
	MaxAdmitted int
	// Now is the clock, which must not be set back: time.Now if nil.
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

// New returns a Guard that has seen nothing: show it all claims and slices before it judges.
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

// See takes a version of a claim that was stored. Versions may come in any order, and again.
func (g *Guard) See(claim *resourceapi.ResourceClaim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.see(claim)
}

// Gone takes that there is no claim with that UID any more.
func (g *Guard) Gone(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.remove(uid)
}

// ReplaceClaims takes all claims that there were at a version of the list.
func (g *Guard) ReplaceClaims(claims []*resourceapi.ResourceClaim, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.replace(claims, version)
}

// SeeSlice takes the latest version of a slice, which may be modified.
func (g *Guard) SeeSlice(slice *resourceapi.ResourceSlice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog.see(slice)
}

// GoneSlice takes that there is no slice of that name any more.
func (g *Guard) GoneSlice(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog.remove(name)
}

// ReplaceSlices takes all slices that there are.
func (g *Guard) ReplaceSlices(slices []*resourceapi.ResourceSlice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalog = newCatalog()
	for _, slice := range slices {
		g.catalog.see(slice)
	}
}

// Counts is what a Guard knows of, in numbers.
type Counts struct {
	// Claims have devices, or may get them any moment. Admitted are the writes that are not settled.
	Claims, Admitted int
	// Twice is how many devices are stored as whole devices of two claims or more: what was not
	// judged, or before there was a guard.
	Twice int
}

// Counts looks at all devices that are in use.
func (g *Guard) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{Claims: len(g.account.entries), Admitted: g.account.admitted, Twice: g.account.twice()}
}

// Admitted is how many writes are not settled.
func (g *Guard) Admitted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.account.admitted
}

// Settle reads the claims of admitted writes that can't be stored any more, of at most so many claims, and forgets
// these writes. It returns the first error.
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

// read looks at what is stored of a claim, and tells whether that is news.
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

// isNewer tells whether a version of an object comes after another, which may be none. It is false if that
// can't be told.
func isNewer(version, than string) bool {
	if than == "" {
		return isUpTo(version, version)
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// isUpTo tells whether a version comes before another or is it. It is false if that can't be told.
func isUpTo(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order <= 0
}
