// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cluster is an API server for tests. It implements Live.
type cluster struct {
	claims map[string]*resourceapi.ResourceClaim
	slices []*resourceapi.ResourceSlice
	reads  int
	err    error
}

// Claim implements Live.
func (c *cluster) Claim(_ context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	c.reads++
	return c.claims[namespace+"/"+name], c.err
}

// Slices implements Live.
func (c *cluster) Slices(context.Context, string) ([]*resourceapi.ResourceSlice, error) {
	c.reads++
	return c.slices, c.err
}

func (c *cluster) store(g *Guard, namespace, name string, version int, devices ...resourceapi.DeviceRequestAllocationResult) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(version)}}
	if len(devices) > 0 {
		claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: devices}}
	}
	c.claims[namespace+"/"+name] = claim
	g.See(claim)
}

// begin returns a Guard that has seen the slices.
func begin(options Options) (*Guard, *cluster) {
	c := &cluster{claims: map[string]*resourceapi.ResourceClaim{}, slices: published()}
	options.Live = c
	g := New(options)
	g.ReplaceSlices(c.slices)
	return g, c
}

func aWrite(name string, version int, devices ...resourceapi.DeviceRequestAllocationResult) *Write {
	return &Write{Claim: Claim{Namespace: "a", Name: name, UID: types.UID("uid-" + name)}, Replaces: strconv.Itoa(version), Results: devices}
}

func TestRefusalsSayWhoIsInTheWay(t *testing.T) {
	g, c := begin(Options{})
	c.store(g, "a", "own", 1, result("plain", "0"))
	c.store(g, "b", "other", 2, result("plain", "1"))
	for n := range 5 {
		c.store(g, "a", fmt.Sprintf("share-%d", n), 3+n, share("0", 2, n))
	}
	require.Nil(t, g.Judge(t.Context(), aWrite("unseen", 10, result("plain", "2"))))
	c.store(g, "a", "unseen", 10)

	in := func(pool, device string) string { return "device " + driver + "/" + pool + "/" + device }
	for device, want := range map[string]struct {
		message  string
		inTheWay []Claim
	}{
		"0": {in("plain", "0") + " is in use: claim a/own", []Claim{{"a", "own", "uid-own"}}},
		"1": {in("plain", "1") + " is in use: a claim of another namespace (UID uid-other)", []Claim{{"b", "other", "uid-other"}}},
		"2": {in("plain", "2") + " is in use: claim a/unseen, whose allocation was admitted but is not stored yet", []Claim{{"a", "unseen", "uid-unseen"}}},
	} {
		require.Equal(t, &Refusal{Reason: Overlaps, Message: want.message, InTheWay: want.inTheWay}, g.Judge(t.Context(), aWrite("new", 11, result("plain", device))))
	}
	refusal := g.Judge(t.Context(), aWrite("new", 11, share("0", 1, 9)))
	require.Equal(t, in("shared", "0")+" has too little free capacity memory: claim a/share-0; claim a/share-1; claim a/share-2; and 2 more", refusal.Message)
	require.Len(t, refusal.InTheWay, 5)
	require.Equal(t, in("plain", "9")+" is in use", func() string {
		return g.Judge(t.Context(), aWrite("new", 11, result("plain", "9"), result("plain", "9"))).Message
	}())
}

// TestAnotherWriteOfTheSameClaim tests that a claim does not conflict with itself, because schedulers repeat a write with the
// same or with other devices.
func TestAnotherWriteOfTheSameClaim(t *testing.T) {
	g, c := begin(Options{})
	require.Nil(t, g.Judge(t.Context(), aWrite("one", 1, result("plain", "0"))))
	require.Nil(t, g.Judge(t.Context(), aWrite("one", 1, result("plain", "0"))))
	require.Equal(t, 1, g.Counts().Admitted)
	require.Nil(t, g.Judge(t.Context(), aWrite("one", 1, result("plain", "1"))))
	c.store(g, "a", "one", 1)
	for _, device := range []string{"0", "1"} {
		require.NotNil(t, g.Judge(t.Context(), aWrite("two", 2, result("plain", device))), "either can be stored")
	}
	c.store(g, "a", "one", 3, result("plain", "1"))
	require.Nil(t, g.Judge(t.Context(), aWrite("two", 2, result("plain", "0"))), "the other can't be stored any more")
	require.Equal(t, Counts{Claims: 2, Admitted: 1}, g.Counts())
}

// TestWhatIsNotStoredIsNotRemembered tests that the Guard records neither dry runs nor writes that replace an outdated version.
func TestWhatIsNotStoredIsNotRemembered(t *testing.T) {
	g, c := begin(Options{})
	dry := aWrite("one", 1, result("plain", "0"))
	dry.DryRun = true
	require.Nil(t, g.Judge(t.Context(), dry))
	c.store(g, "a", "late", 5, result("plain", "1"))
	require.Nil(t, g.Judge(t.Context(), aWrite("late", 4, result("plain", "0"))))
	require.Equal(t, Counts{Claims: 1}, g.Counts())
	require.Nil(t, g.Judge(t.Context(), aWrite("two", 6, result("plain", "0"))))

	dry.Results = results{result("plain", "1")}
	require.NotNil(t, g.Judge(t.Context(), dry), "it is told what would be")
}

func TestReadsBeforeItRefuses(t *testing.T) {
	g, c := begin(Options{})
	c.store(g, "a", "gone", 1, result("plain", "0"))
	c.store(g, "a", "again", 2, result("plain", "1"))
	c.store(g, "a", "freed", 3, result("plain", "2"))
	delete(c.claims, "a/gone")
	c.claims["a/again"] = &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "again", UID: "another", ResourceVersion: "4"}}
	c.claims["a/freed"] = &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "freed", UID: "uid-freed", ResourceVersion: "5"}}
	require.Nil(t, g.Judge(t.Context(), aWrite("new", 6, result("plain", "0"), result("plain", "1"), result("plain", "2"))))
	require.Equal(t, 3, c.reads)

	c.store(g, "a", "has", 7, share("0", 10, 1))
	c.err = errors.New("no connection")
	refusal := g.Judge(t.Context(), aWrite("third", 8, share("0", 1, 2)))
	require.Equal(t, Unconfirmed, refusal.Reason)
	require.Contains(t, refusal.Message, "the guard could not read the current state: no connection; try again")
}

// TestReadsSlicesThatItHasNotSeen tests that the Guard reads a driver's slices before it refuses a device that they don't
// contain.
func TestReadsSlicesThatItHasNotSeen(t *testing.T) {
	g, c := begin(Options{})
	g.ReplaceSlices(nil)
	g.SeeSlice(c.slices[0])
	require.Equal(t, Overlaps, g.Judge(t.Context(), aWrite("one", 1, result("parts", "whole"), result("parts", "half-0"))).Reason)
	require.Equal(t, 1, c.reads)
	for _, slice := range c.slices {
		g.SeeSlice(slice)
	}
	smaller := c.slices[1].DeepCopy()
	smaller.Spec.Devices = smaller.Spec.Devices[:1]
	g.SeeSlice(smaller)
	require.Nil(t, g.Judge(t.Context(), aWrite("two", 2, share("1", 10, 1))))
	require.Equal(t, 2, c.reads)
	g.GoneSlice("parts-chips")
	g.GoneSlice("never was")
	require.Nil(t, g.Judge(t.Context(), aWrite("three", 3, result("parts", "whole"))), "the slice was not gone")

	c.err = errors.New("no connection")
	require.Equal(t, Unconfirmed, g.Judge(t.Context(), aWrite("four", 4, result("nowhere", "0"))).Reason)
	c.err = nil
	require.Nil(t, g.Judge(t.Context(), aWrite("four", 4, result("nowhere", "0"))), "what nobody publishes has a name")
}

func TestLimits(t *testing.T) {
	g, c := begin(Options{MaxAdmitted: 40})
	for n := range maxOfClaim {
		require.Nil(t, g.Judge(t.Context(), aWrite("one", 1, share("0", 0, n))))
	}
	refusal := g.Judge(t.Context(), aWrite("one", 1, share("0", 0, 100)))
	require.Equal(t, &Refusal{Reason: Overloaded, Message: "32 admitted allocations of this claim are not stored yet; try again later"}, refusal)
	for n := range 40 - maxOfClaim {
		require.Nil(t, g.Judge(t.Context(), aWrite(fmt.Sprint("other-", n), 2, share("0", 0, 200+n))))
	}
	require.Equal(t, "40 admitted allocations are not stored yet; try again later", g.Judge(t.Context(), aWrite("two", 3, share("0", 0, 300))).Message)

	refusal = g.Judge(t.Context(), aWrite("two", 3, make(results, maxResults+1)...))
	require.Equal(t, &Refusal{Reason: Invalid, Message: "the allocation has 33 devices, the limit is 32"}, refusal)
	long := make(results, 2)
	long[1].Device = strings.Repeat("x", maxResult)
	require.Contains(t, g.Judge(t.Context(), aWrite("two", 3, long...)).Message, "device 1 of the allocation has 16394 bytes, the limit is 16384")
	refusal = g.Judge(t.Context(), &Write{Claim: Claim{UID: "u"}, Replaces: "new"})
	require.Equal(t, &Refusal{Reason: Invalid, Message: `the former claim has UID "u" and version "new": both must match a stored claim`}, refusal)
	require.Equal(t, Invalid, g.Judge(t.Context(), &Write{Replaces: "1"}).Reason)
	var drivers results
	for n := range maxReads + 1 {
		r := result("pool", "0")
		r.Driver = fmt.Sprint("driver-", n)
		drivers = append(drivers, r)
	}
	c.reads = 0
	require.Equal(t, Invalid, g.Judge(t.Context(), aWrite("two", 3, drivers...)).Reason)
	require.Equal(t, maxReads, c.reads)
}

// TestSettle tests that a write that was neither stored nor replaced visibly is removed only when it can't be stored any more.
func TestSettle(t *testing.T) {
	now := time.Unix(0, 0)
	g, c := begin(Options{Now: func() time.Time { return now }})
	c.store(g, "a", "one", 1)
	require.Nil(t, g.Judge(t.Context(), aWrite("one", 1, result("plain", "0"))))
	require.Nil(t, g.Judge(t.Context(), aWrite("gone", 2, result("plain", "1"))))
	now = now.Add(DefaultGrace)
	require.NoError(t, g.Settle(t.Context(), 10))
	require.Equal(t, 2, g.Counts().Admitted)
	now = now.Add(1)
	c.err = errors.New("no connection")
	require.ErrorIs(t, g.Settle(t.Context(), 10), c.err)
	require.Equal(t, 2, g.Counts().Admitted)
	c.err = nil
	require.NoError(t, g.Settle(t.Context(), 1))
	require.Equal(t, 1, g.Counts().Admitted)
	require.NoError(t, g.Settle(t.Context(), 1))
	require.Equal(t, Counts{}, g.Counts())
}

// TestCountsDevicesAllocatedTwice tests that Counts reports conflicting allocations that the Guard did not judge.
func TestCountsDevicesAllocatedTwice(t *testing.T) {
	g, c := begin(Options{})
	c.store(g, "a", "one", 1, result("plain", "0"), result("plain", "1"), share("0", 1, 1))
	c.store(g, "a", "two", 2, result("plain", "0"), admin(result("plain", "1")), share("0", 1, 2))
	c.store(g, "a", "three", 3, result("plain", "0"))
	require.Equal(t, Counts{Claims: 3, Twice: 1}, g.Counts())
	g.Gone("uid-two")
	g.Gone("uid-three")
	require.Equal(t, Counts{Claims: 1}, g.Counts())
}

// TestVersionsThatAreNone tests that claims with versions that can't be compared change nothing.
func TestVersionsThatAreNone(t *testing.T) {
	g, c := begin(Options{})
	c.store(g, "a", "one", 1, result("plain", "0"))
	none := c.claims["a/one"].DeepCopy()
	none.ResourceVersion, none.Status.Allocation = "new", nil
	g.See(none)
	g.ReplaceClaims(nil, "")
	require.Equal(t, Counts{Claims: 1}, g.Counts())
	g.ReplaceClaims(nil, "1")
	require.Equal(t, Counts{}, g.Counts())
}
